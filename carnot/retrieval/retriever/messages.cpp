#include "carnot/retrieval/retriever/messages.h"

#include <chrono>

#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"

namespace carnot {
namespace {

Status read_queries(const Json& request, std::vector<std::string>& queries) {
  const auto many = request.find("queries"), one = request.find("query");
  const Json* given = many != request.end() ? &*many : one != request.end() ? &*one : nullptr;
  if (given == nullptr) return Error{"queries: missing; expected a list of strings"};
  if (given->is_string()) {
    queries.push_back(given->get<std::string>());
    return Done{};
  }
  if (!given->is_array()) return Error{"queries: expected a list of strings, found " + shown(*given)};
  if (given->size() > kMostQueries)
    return Error{"queries: expected at most " + std::to_string(kMostQueries) + ", found " +
                 std::to_string(given->size())};
  for (std::size_t i = 0; i < given->size(); ++i) {
    const Json& query = (*given)[i];
    if (!query.is_string())
      return Error{"queries[" + std::to_string(i) + "]: expected a string, found " + shown(query)};
    queries.push_back(query.get<std::string>());
  }
  return Done{};
}

Result<RetrievedPassage> retrieved_passage(const Json& item, const std::string& where) {
  if (!item.is_object()) return Error{where + ": expected an object, found " + shown(item)};
  const auto inner = item.find("document");
  const Json& document = inner == item.end() ? item : *inner;
  if (!document.is_object()) return Error{where + ".document: expected an object, found " + shown(document)};
  RetrievedPassage passage;
  const auto text_at = [&](const char* key) -> const std::string* {
    const auto found = document.find(key);
    return found == document.end() ? nullptr : found->get_ptr<const std::string*>();
  };
  if (const std::string* contents = text_at("contents")) {
    passage.contents = *contents;
  } else if (const std::string* text = text_at("text")) {
    const std::string* title = text_at("title");
    passage.contents = title == nullptr ? *text : "\"" + *title + "\"\n" + *text;
  } else {
    return Error{where + ".document: expected a string under contents"};
  }
  if (const auto id = document.find("id"); id != document.end() && !id->is_null())
    passage.id = id->is_string() ? id->get<std::string>() : id->dump();
  if (const auto score = item.find("score"); inner != item.end() && score != item.end()) {
    if (!score->is_number()) return Error{where + ".score: expected a number, found " + shown(*score)};
    passage.score = score->get<double>();
  }
  return passage;
}

constexpr std::chrono::seconds kLongestRetrieval{600};

}  // namespace

Result<RetrieveRequest> parse_retrieve_request(std::string_view body, int usual_topk) {
  CARNOT_ASSIGN_OR_RETURN(const auto given, parse_json_object(body, "the request"));
  RetrieveRequest request{.topk = usual_topk};
  CARNOT_RETURN_IF_ERROR(read_queries(given, request.queries));
  if (const auto topk = given.find("topk"); topk != given.end() && !topk->is_null()) {
    if (!topk->is_number_integer() || *topk < 1 || *topk > kMostPassages)
      return Error{"topk: expected an integer from 1 to " + std::to_string(kMostPassages) + ", found " + shown(*topk)};
    request.topk = topk->get<int>();
  }
  if (const auto scores = given.find("return_scores"); scores != given.end() && !scores->is_null()) {
    if (!scores->is_boolean()) return Error{"return_scores: expected true or false, found " + shown(*scores)};
    request.return_scores = scores->get<bool>();
  }
  return request;
}

std::string retrieve_request(std::span<const std::string> queries, int topk) {
  return json_line(OrderedJson{
      {"queries", std::vector<std::string>(queries.begin(), queries.end())}, {"topk", topk}, {"return_scores", true}});
}

std::string retrieve_answer(std::span<const RetrievedPassages> found, bool with_scores) {
  OrderedJson result = OrderedJson::array();
  for (const RetrievedPassages& passages : found) {
    OrderedJson list = OrderedJson::array();
    for (const auto& [id, contents, score] : passages) {
      OrderedJson document = {{"id", id}, {"contents", contents}};
      list.push_back(with_scores ? OrderedJson{{"document", std::move(document)}, {"score", score}}
                                 : std::move(document));
    }
    result.push_back(std::move(list));
  }
  return json_line(OrderedJson{{"result", std::move(result)}});
}

Result<std::vector<RetrievedPassages>> parse_retrieve_answer(std::string_view body, std::size_t num_queries,
                                                             const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const auto answer, parse_json_object(body, where));
  const auto result = answer.find("result");
  if (result == answer.end() || !result->is_array())
    return Error{where + ": expected a list under result, found " + (result == answer.end() ? "none" : shown(*result))};
  if (result->size() != num_queries)
    return Error{where + ": result: expected a list for each of " + std::to_string(num_queries) + " queries, found " +
                 std::to_string(result->size())};
  std::vector<RetrievedPassages> found;
  for (std::size_t i = 0; i < result->size(); ++i) {
    const Json& list = (*result)[i];
    const std::string place = where + ": result[" + std::to_string(i) + "]";
    if (!list.is_array()) return Error{place + ": expected a list, found " + shown(list)};
    found.emplace_back();
    for (std::size_t j = 0; j < list.size(); ++j) {
      CARNOT_ASSIGN_OR_RETURN(auto passage, retrieved_passage(list[j], place + "[" + std::to_string(j) + "]"));
      found.back().push_back(std::move(passage));
    }
  }
  return found;
}

std::string retriever_error(const std::string& message) { return json_line(OrderedJson{{"detail", message}}); }

HttpHandler retriever_handler(std::shared_ptr<const Retriever> retriever, int usual_topk) {
  return [retriever = std::move(retriever), usual_topk](const HttpCall& call, const HttpConnection&) -> HttpReply {
    if (call.path == "/health") return {.body = R"({"status":"ok"})"};
    if (call.path != "/retrieve") return {.status = 404, .body = retriever_error("Not Found")};
    if (call.method != "POST") return {.status = 405, .body = retriever_error("Method Not Allowed")};
    const auto request = parse_retrieve_request(call.body, usual_topk);
    if (!request) return {.status = 422, .body = retriever_error(request.error().message)};
    try {
      const auto found =
          retriever->retrieve(request->queries, request->topk, std::chrono::steady_clock::now() + kLongestRetrieval);
      return {.body = retrieve_answer(found, request->return_scores)};
    } catch (const RetrieverFailure& failure) {
      log(LogLevel::Error, failure.what());
      return {.status = 500, .body = retriever_error(failure.what())};
    }
  };
}

}  // namespace carnot
