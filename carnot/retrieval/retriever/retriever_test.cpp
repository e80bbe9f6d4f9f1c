#include "carnot/retrieval/retriever/retriever.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/http/client.h"
#include "carnot/retrieval/retriever/messages.h"
#include "carnot/tools/toolbox/toolbox.h"
#include "testing/local_http_server.h"
#include "testing/missing.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

Tool::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

/// Ten invented passages in the format of wiki-18.
const std::string kInventedPassages = source_path("tests/tasks/open_qa/ten_passages.jsonl");
std::shared_ptr<const Retriever> example() { return open_retriever(kInventedPassages).value(); }

const std::vector<std::string> kQueries{"Who was the ethnologist Horace Pell?", "zebra", "Ewan Morrow lobbyist ferry"};

HttpAnswer post(int port, const std::string& path, const std::string& body) {
  const auto url = parse_url("http://127.0.0.1:" + std::to_string(port) + path).value();
  return http_exchange({.method = "POST", .url = url, .headers = {{"Content-Type", "application/json"}}, .body = body})
      .value();
}

std::unique_ptr<HttpServer> serve(std::shared_ptr<const Retriever> retriever) {
  return HttpServer::start({}, retriever_handler(std::move(retriever), 3)).value();
}

TEST(RetrieverMessages, AreThoseOfSearchR1) {
  const auto request =
      parse_retrieve_request(R"({"queries": ["What is Python?", "x"], "topk": 5, "return_scores": true})", 3).value();
  EXPECT_EQ(request.queries, (std::vector<std::string>{"What is Python?", "x"}));
  EXPECT_EQ(request.topk, 5);
  EXPECT_TRUE(request.return_scores);
  EXPECT_EQ(parse_retrieve_request(R"({"queries": ["x"], "topk": null})", 3)->topk, 3);
  EXPECT_EQ(parse_retrieve_request(R"({"query": "one", "topk": 2, "return_scores": true})", 3)->queries,
            std::vector<std::string>{"one"});
  const std::vector<RetrievedPassages> found{{{.id = "7", .contents = "\"T\"\nx", .score = 1.5}}, {}};
  EXPECT_EQ(retrieve_answer(found, true),
            R"({"result":[[{"document":{"id":"7","contents":"\"T\"\nx"},"score":1.5}],[]]})");
  EXPECT_EQ(retrieve_answer(found, false), R"({"result":[[{"id":"7","contents":"\"T\"\nx"}],[]]})");
  EXPECT_EQ(parse_retrieve_answer(retrieve_answer(found, true), 2, "a").value(), found);
  EXPECT_EQ(retrieve_request(kQueries, 3),
            R"({"queries":["Who was the ethnologist Horace Pell?","zebra","Ewan Morrow lobbyist ferry"],"topk":3,)"
            R"("return_scores":true})");
}

TEST(RetrieverMessages, SayWhatIsWrongWithARequest) {
  const auto problem = [](const char* body) { return parse_retrieve_request(body, 3).error().message; };
  EXPECT_THAT(problem("[]"), HasSubstr("the request"));
  EXPECT_EQ(problem("{}"), "queries: missing; expected a list of strings");
  EXPECT_THAT(problem(R"({"queries": ["a", 5]})"), HasSubstr("queries[1]: expected a string"));
  EXPECT_THAT(problem(R"({"queries": [], "topk": 0})"), HasSubstr("topk: expected an integer from 1"));
  EXPECT_THAT(problem(R"({"queries": [], "topk": 99999999999999})"), HasSubstr("topk"));
  EXPECT_THAT(problem(R"({"queries": [], "return_scores": 1})"), HasSubstr("return_scores"));
}

TEST(RetrieverMessages, SayWhatIsWrongWithAnAnswer) {
  const auto problem = [](const char* body) { return parse_retrieve_answer(body, 1, "s").error().message; };
  EXPECT_THAT(problem("<html>"), HasSubstr("s: "));
  EXPECT_THAT(problem("{}"), HasSubstr("s: expected a list under result"));
  EXPECT_THAT(problem(R"({"result": []})"), HasSubstr("each of 1 queries, found 0"));
  EXPECT_THAT(problem(R"({"result": [5]})"), HasSubstr("s: result[0]: expected a list"));
  EXPECT_THAT(problem(R"({"result": [[{"document": {}}]]})"), HasSubstr("s: result[0][0].document: expected a string"));
  EXPECT_THAT(problem(R"({"result": [[{"document": {"contents": ""}, "score": "x"}]]})"), HasSubstr(".score: "));
}

/// The first query is about the passage with id 1, the second about none.
void expect_that_retrievers_find_alike(const std::string& passages, const std::vector<std::string>& queries,
                                       const std::string& title) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("carnot_retrievers_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto index = folder / "example.bm25";
  ASSERT_TRUE(build_index_file(passages, index, {}).ok());
  const auto memory = open_retriever(passages).value(), file = open_retriever(index.string()).value();
  const auto server = serve(file);
  const auto client = open_retriever("http://127.0.0.1:" + std::to_string(server->port())).value();
  const auto found = memory->retrieve(queries, 3, soon());
  ASSERT_EQ(found.size(), 3u);
  ASSERT_FALSE(found[0].empty());
  EXPECT_EQ(found[0][0].id, "1");
  EXPECT_TRUE(found[0][0].contents.starts_with("\"" + title + "\"\n"));
  EXPECT_TRUE(found[1].empty());
  EXPECT_EQ(file->retrieve(queries, 3, soon()), found);
  EXPECT_EQ(client->retrieve(queries, 3, soon()), found);
  std::filesystem::remove_all(folder);
}

TEST(Retrievers, InMemoryOverAFileAndOverHttpFindTheSame) {
  expect_that_retrievers_find_alike(kInventedPassages, kQueries, "Horace Pell");
}

// The ten passages of Search-R1's own example.
TEST(Retrievers, FindTheSameInPublishedPassages) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  expect_that_retrievers_find_alike(
      published_path("qa/wiki18_example.jsonl"),
      {"Who was the ethnologist Horatio Hale?", "zebra", "Evan Morris lobbyist Genentech"}, "Horatio Hale");
}

TEST(RetrieverServer, AnswersAsSearchR1sDoes) {
  const auto server = serve(example());
  const auto answer = post(server->port(), "/retrieve", R"({"queries": ["Horace Pell"], "return_scores": true})");
  EXPECT_EQ(answer.status, 200);
  const auto json = parse_json(answer.body, "answer").value();
  ASSERT_EQ(json.at("result").size(), 1u);
  EXPECT_LE(json["result"][0].size(), 3u);
  EXPECT_EQ(json["result"][0][0]["document"]["id"], "1");
  EXPECT_TRUE(json["result"][0][0]["score"].is_number_float());
  EXPECT_EQ(post(server->port(), "/retrieve", "{").status, 422);
  EXPECT_EQ(parse_json(post(server->port(), "/retrieve", "{}").body, "").value()["detail"],
            "queries: missing; expected a list of strings");
  EXPECT_EQ(post(server->port(), "/nowhere", "{}").status, 404);
  const auto health =
      http_exchange({.url = parse_url("http://127.0.0.1:" + std::to_string(server->port()) + "/health").value()});
  EXPECT_EQ(health.value().status, 200);
}

TEST(RetrieverServer, AnswersManyAtOnce) {
  const auto server = serve(example());
  const auto client = open_retriever("http://127.0.0.1:" + std::to_string(server->port())).value();
  const auto expected = example()->retrieve(kQueries, 3, soon());
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 10; ++j) right += client->retrieve(kQueries, 3, soon()) == expected ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

TEST(RetrieverServer, SaysThatItsIndexWasCutShort) {
  const auto index =
      std::filesystem::path(::testing::TempDir()) / ("carnot_cut_" + std::to_string(::getpid()) + ".bm25");
  ASSERT_TRUE(build_index_file(kInventedPassages, index, {}).ok());
  const auto server = serve(open_retriever(index.string()).value());
  std::filesystem::resize_file(index, 512);
  const auto answer = post(server->port(), "/retrieve", R"({"queries": ["Horace Pell"]})");
  EXPECT_EQ(answer.status, 500);
  EXPECT_THAT(answer.body, HasSubstr("was cut short while it was open"));
  const auto client = open_retriever("http://127.0.0.1:" + std::to_string(server->port())).value();
  EXPECT_THROW(client->retrieve(kQueries, 3, soon()), RetrieverFailure);
  std::filesystem::remove(index);
}

TEST(RetrieverClient, AsksAgainAndThenSaysWhatFailed) {
  std::atomic<int> asked = 0;
  testing::LocalHttpServer flaky([&](const testing::ReceivedRequest& request) -> testing::GivenAnswer {
    EXPECT_EQ(request.target, "/retrieve");
    if (++asked < 3) return {.status = 503, .body = "{}"};
    return {.body = R"({"result": [[{"document": {"id": 4, "title": "T", "text": "x"}, "score": 2}]]})"};
  });
  const std::vector<std::string> query{"q"};
  const auto found = open_retriever(flaky.url()).value()->retrieve(query, 3, soon());
  EXPECT_EQ(found, (std::vector<RetrievedPassages>{{{.id = "4", .contents = "\"T\"\nx", .score = 2}}}));
  EXPECT_EQ(asked, 3);

  testing::LocalHttpServer broken(
      [&](const testing::ReceivedRequest&) -> testing::GivenAnswer { return {.body = R"({"result": 5})"}; });
  try {
    open_retriever(broken.url()).value()->retrieve(query, 3, soon());
    FAIL() << "an unparsable answer";
  } catch (const RetrieverFailure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("expected a list under result, found 5"));
  }
  EXPECT_THROW(open_retriever("http://127.0.0.1:9").value()->retrieve(query, 3, soon()), RetrieverFailure);
  EXPECT_THROW(open_retriever(flaky.url()).value()->retrieve(query, 3, std::chrono::steady_clock::now()),
               RetrieverFailure);
  EXPECT_FALSE(open_retriever("http://").ok());
  EXPECT_FALSE(open_retriever("/nowhere/passages.jsonl").ok());
}

TEST(RetrieverSearch, IsTheToolSearchOverAServer) {
  const auto server = serve(example());
  const auto box = Toolbox::open({.tools = {"search http://127.0.0.1:" + std::to_string(server->port())}}).value();
  ASSERT_EQ(box->descriptions().size(), 1u);
  EXPECT_EQ(box->descriptions()[0].name, "search");
  const ToolSet tools = box->for_an_episode();
  const auto found = tools.call("search", R"({"query": "Horace Pell", "limit": 1})", soon());
  EXPECT_EQ(found.status, "ok");
  EXPECT_THAT(found.text, ::testing::StartsWith("[1] \"Horace Pell\"\n"));
  EXPECT_EQ(tools.call("search", R"({"query": "zebra"})", soon()).status, "empty");
  server->stop();
  EXPECT_THROW(tools.call("search", R"({"query": "Pell"})", soon()), PeerFailure);
}

}  // namespace
}  // namespace carnot
