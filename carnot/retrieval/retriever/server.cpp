#include "carnot/retrieval/retriever/server.h"

#include <chrono>

#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/retrieval/retriever/messages.h"

namespace carnot {
namespace {

constexpr std::chrono::seconds kLongestRetrieval{600};

}  // namespace

std::string retriever_error(const std::string& message) {
  return OrderedJson{{"detail", message}}.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

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
