// The scorer `judge` of the environment `dataset`, against a server of this test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/worlds/dataset/environment.h"
#include "testing/field_settings.h"
#include "testing/local_http_server.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using testing::GivenAnswer;
using ::testing::HasSubstr;
using testing::LocalHttpServer;
using ::testing::Not;
using testing::RawServer;
using testing::ReceivedRequest;

using Settings = std::map<std::string, std::string>;

/// What a server answers whose model says `text`.
GivenAnswer says(const std::string& text) {
  Json answer;
  answer["choices"][0]["message"] = {{"role", "assistant"}, {"content", text}};
  return {.body = answer.dump()};
}

class JudgeScorer : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("carnot_judge_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "rows.jsonl") << R"({"question": "Größe {response}?", "answer": ["4", "four"], "level": 2})"
                                          << "\n";
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    ::unsetenv("CARNOT_TEST_KEY");
  }

  Result<std::shared_ptr<EnvironmentFactory>> dataset(Settings settings) const {
    const std::string rows = folder_ / "rows.jsonl";
    settings.insert({{"train_file", rows}, {"test_file", rows}, {"scorers", "judge"}, {"judge.model", "wise"}});
    settings.insert({{"judge.first_pause", "0.001"}});
    std::shared_ptr<EnvironmentFactory> factory = make_dataset();
    testing::FieldSettings fields(settings);
    factory->fields(fields);
    EXPECT_EQ(fields.unused(), std::vector<std::string>{});
    if (const Status prepared = factory->prepare(0); !prepared) return prepared.error();
    return factory;
  }

  static Reply answer(const EnvironmentFactory& factory, const std::string& response) {
    const auto environment = factory.make(Split::Validation, 0);
    environment->open();
    return environment->step(response);
  }

  Reply reply(const Settings& settings, const std::string& response) const {
    return answer(*dataset(settings).value(), response);
  }

  /// What a step throws; empty if it scores.
  std::string failure_of(const Settings& settings) const {
    try {
      (void)reply(settings, "4");
    } catch (const ChatFailure& failure) {
      return failure.what();
    }
    return "";
  }

  std::string error_of(const Settings& settings) const {
    const auto made = dataset(settings);
    return made ? "" : made.error().message;
  }

  std::filesystem::path folder_{};
};

TEST_F(JudgeScorer, AsksTheModelAndReadsItsScore) {
  ReceivedRequest seen;
  const LocalHttpServer server([&](const ReceivedRequest& request) {
    seen = request;
    return says("Score: 2 at first, but no.\n**Score: 7.5**");
  });
  ::setenv("CARNOT_TEST_KEY", "sk-secret\n", 1);
  const Reply scored = reply({{"judge.url", server.url("/v1/")},
                              {"judge.key_variable", "CARNOT_TEST_KEY"},
                              {"judge.system", "Be fair, level {level}."},
                              {"judge.extra", R"({"seed": 3, "max_tokens": null})"}},
                             "a {question} \xff");
  EXPECT_DOUBLE_EQ(scored.reward, 0.75);
  EXPECT_EQ(scored.measures, (std::map<std::string, double>{{"judge", 0.75}}));
  EXPECT_EQ(seen.method + " " + seen.target, "POST /v1/chat/completions");
  EXPECT_EQ(seen.headers.at("authorization"), "Bearer sk-secret");
  const std::string asked =
      "Grade a response to a question.\n\nQuestion:\nGröße {response}?\n\nRight answer:\n4 or four\n\nResponse:\n"
      "a {question} \xEF\xBF\xBD\n\n";
  const Json body = Json::parse(seen.body);
  EXPECT_EQ(body.at("model"), "wise");
  EXPECT_EQ(body.at("temperature"), 0);
  EXPECT_EQ(body.at("seed"), 3);
  EXPECT_FALSE(body.contains("max_tokens"));
  EXPECT_EQ(body.at("messages").at(0), (Json{{"role", "system"}, {"content", "Be fair, level 2."}}));
  EXPECT_EQ(body.at("messages").at(1).at("role"), "user");
  EXPECT_THAT(body.at("messages").at(1).at("content").get<std::string>(), ::testing::StartsWith(asked));
}

TEST_F(JudgeScorer, ReadsScoresByPatternOrField) {
  std::string text;
  const LocalHttpServer server([&](const ReceivedRequest&) { return says(text); });
  const auto reward = [&](const std::string& said, Settings settings) {
    text = said;
    settings["judge.url"] = server.url();
    return reply(settings, "4").reward;
  };
  EXPECT_EQ(reward("score 10", {}), 1);
  EXPECT_EQ(reward("[[B]] [[A-1]]", {{"judge.score_pattern", "-?\\d"}, {"judge.lowest", "-1"}, {"judge.highest", "1"}}),
            0);
  EXPECT_EQ(reward("no: 3, yes: 5", {{"judge.score_pattern", "no: (\\d)|yes: (\\d)"}}), 0.5) << "the last match";
  const Settings field{{"judge.score_field", "grade"}, {"judge.highest", "4"}};
  EXPECT_EQ(reward(R"({"why": "so", "grade": 3})", field), 0.75);
  EXPECT_EQ(reward("```json\n{\"grade\": 1}\n```\n", field), 0.25);
  EXPECT_EQ(reward(R"({"grade": true})", field), 1);
}

TEST_F(JudgeScorer, AnAnswerWithoutAScoreIsAFailure) {
  std::string text;
  const LocalHttpServer server([&](const ReceivedRequest&) { return says(text); });
  const auto failure = [&](const std::string& said, Settings settings = {}) {
    text = said;
    settings["judge.url"] = server.url();
    return failure_of(settings);
  };
  EXPECT_EQ(failure("Fine!"), "env.judge.score_pattern: matches nothing; the judge answered \"Fine!\"");
  EXPECT_THAT(failure("Score: 11"), HasSubstr("env.judge.highest: a score of 11; expected 0 to 10"));
  EXPECT_THAT(failure("Score: -1"), HasSubstr("env.judge.lowest: a score of -1"));
  EXPECT_THAT(failure("five", {{"judge.score_pattern", "f.ve"}}), HasSubstr("\"five\" is no number"));
  EXPECT_THAT(failure("nan", {{"judge.score_pattern", "nan"}}), HasSubstr("\"nan\" is no number"));
  const Settings field{{"judge.score_field", "grade"}};
  EXPECT_THAT(failure("Score: 5", field), HasSubstr("env.judge.score_field: "));
  EXPECT_THAT(failure("{}", field), HasSubstr("no member \"grade\""));
  EXPECT_THAT(failure(R"({"grade": "good"})", field), HasSubstr("expected a number, found \"good\""));
  EXPECT_THAT(failure(R"({"grade": 1e300})", field), HasSubstr("expected 0 to 10"));
}

TEST_F(JudgeScorer, RetriesAfterTemporaryFailures) {
  // Each kind of temporary failure once, and then an answer.
  const std::vector<GivenAnswer> troubles{{.status = 500},
                                          {.status = 429, .headers = {{"Retry-After", "0"}}},
                                          {.status = 503},
                                          {.body = "<html>"},
                                          {.body = R"({"choices": []})"},
                                          {.body = R"({"choices": [{"message": {"content": null}}]})"},
                                          {.body = "[]"}};
  std::atomic<std::size_t> requests = 0;
  const LocalHttpServer server([&](const ReceivedRequest&) {
    const std::size_t request = requests++;
    return request < troubles.size() ? troubles[request] : says("Score: 5");
  });
  EXPECT_EQ(reply({{"judge.url", server.url()}, {"judge.retries", "7"}}, "4").reward, 0.5);
  EXPECT_EQ(requests, troubles.size() + 1);
}

TEST_F(JudgeScorer, GivesUpEventually) {
  std::atomic<int> requests = 0;
  GivenAnswer given{.status = 500, .body = "overloaded: sk-secret"};
  const LocalHttpServer server([&](const ReceivedRequest&) {
    ++requests;
    return given;
  });
  ::setenv("CARNOT_TEST_KEY", "sk-secret", 1);
  Settings settings{
      {"judge.url", server.url("/v1?user=me")}, {"judge.retries", "2"}, {"judge.key_variable", "CARNOT_TEST_KEY"}};
  EXPECT_EQ(failure_of(settings), "env.judge.url: POST " + server.url("/v1/chat/completions?...") +
                                      ": status 500: overloaded: ***, after 3 requests");
  EXPECT_EQ(requests, 3);
  given = {.status = 401, .body = "who?"};
  EXPECT_THAT(failure_of(settings), HasSubstr("status 401: who?"));
  EXPECT_EQ(requests, 4) << "that will not pass";
  given = {.status = 429, .body = "", .headers = {{"Retry-After", "3600"}}};
  EXPECT_THAT(failure_of(settings), HasSubstr("the next one would come too late (env.judge.timeout)"));
  EXPECT_EQ(requests, 5);
  given = {.status = 301, .body = "", .headers = {{"Location", "/"}}};
  EXPECT_THAT(failure_of(settings), HasSubstr("status 301"));
}

TEST_F(JudgeScorer, DoesNotWaitForASlowOrMissingServer) {
  const RawServer silent([](int connection) {
    for (char c = 0; ::read(connection, &c, 1) > 0;) {
    }
  });
  EXPECT_THAT(failure_of({{"judge.url", silent.url()}, {"judge.request_timeout", "0.5"}, {"judge.retries", "1"}}),
              HasSubstr("no whole answer within 0.5 s, after 2 requests"));
  EXPECT_THAT(failure_of({{"judge.url", "http://127.0.0.1:1"}, {"judge.retries", "1"}}), HasSubstr("no connection"));
}

TEST_F(JudgeScorer, AllRequestsWaitWhenTheServerAsks) {
  // The first answer asks to wait for a second; no request comes before that.
  std::mutex mutex;
  std::vector<std::chrono::steady_clock::time_point> times;
  const LocalHttpServer server([&](const ReceivedRequest&) {
    const std::lock_guard lock(mutex);
    times.push_back(std::chrono::steady_clock::now());
    return times.size() == 1 ? GivenAnswer{.status = 429, .headers = {{"Retry-After", "1"}}} : says("Score: 5");
  });
  const auto factory = dataset({{"judge.url", server.url()}, {"judge.concurrency", "1"}}).value();
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&, c] { EXPECT_EQ(answer(*factory, std::to_string(c)).reward, 0.5); });
  for (std::thread& caller : callers) caller.join();
  ASSERT_EQ(times.size(), 4u);
  EXPECT_GE(times[1] - times[0], std::chrono::milliseconds(990));
}

TEST_F(JudgeScorer, LimitsConcurrentRequests) {
  std::atomic<int> under_way = 0, most = 0;
  const LocalHttpServer server([&](const ReceivedRequest&) {
    const int now = ++under_way;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --under_way;
    return says("Score: 5");
  });
  const auto factory = dataset({{"judge.url", server.url()}, {"judge.concurrency", "3"}}).value();
  std::vector<std::thread> callers;
  for (int c = 0; c < 12; ++c) callers.emplace_back([&, c] { (void)answer(*factory, std::to_string(c)); });
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(most, 3);
}

TEST_F(JudgeScorer, StaysWithinItsBudget) {
  std::atomic<int> requests = 0;
  const LocalHttpServer server([&](const ReceivedRequest&) {
    ++requests;
    return says("Score: 5");
  });
  const auto factory = dataset({{"judge.url", server.url()}, {"judge.max_requests", "2"}}).value();
  EXPECT_EQ(answer(*factory, "1").reward, 0.5);
  EXPECT_EQ(answer(*factory, "2").reward, 0.5);
  EXPECT_THROW(
      {
        try {
          (void)answer(*factory, "3");
        } catch (const ChatFailure& failure) {
          EXPECT_STREQ(failure.what(), "env.judge.max_requests: the budget of 2 requests is spent");
          throw;
        }
      },
      ChatFailure);
  EXPECT_EQ(requests, 2);
}

TEST_F(JudgeScorer, ASecondRunOverTheSameResponsesSendsNoRequests) {
  std::atomic<int> requests = 0;
  const LocalHttpServer server([&](const ReceivedRequest& request) {
    ++requests;
    return says(request.body.find("garbage") == std::string::npos ? "Score: 5" : "hm");
  });
  const Settings settings{{"judge.url", server.url()}, {"judge.cache", folder_ / "cache"}};
  EXPECT_EQ(reply(settings, "4").reward, 0.5);
  EXPECT_EQ(reply(settings, "4").reward, 0.5);
  EXPECT_EQ(requests, 1);
  EXPECT_EQ(reply(settings, "5").reward, 0.5);
  EXPECT_EQ(requests, 2) << "another response is another question";
  Settings other = settings;
  other["judge.model"] = "wiser";
  EXPECT_EQ(reply(other, "4").reward, 0.5);
  EXPECT_EQ(requests, 3) << "and so is another judge";
  EXPECT_THROW((void)reply(settings, "garbage"), ChatFailure);
  EXPECT_THROW((void)reply(settings, "garbage"), ChatFailure);
  EXPECT_EQ(requests, 5) << "what has no score is not kept";
}

TEST_F(JudgeScorer, DamagedAnswersAreRequestedAgain) {
  std::atomic<int> requests = 0;
  const LocalHttpServer server([&](const ReceivedRequest&) {
    ++requests;
    return says("Score: 5");
  });
  const Settings settings{{"judge.url", server.url()}, {"judge.cache", folder_ / "cache"}};
  EXPECT_EQ(reply(settings, "4").reward, 0.5);
  int files = 0;
  for (const std::string damage : {"", "{\"answer\": \"Sco", "{\"answer\": 5}", "[]"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "cache"))
      if (entry.is_regular_file()) std::ofstream(entry.path()) << damage, ++files;
    EXPECT_EQ(reply(settings, "4").reward, 0.5);
  }
  EXPECT_EQ(files, 4) << "one answer, one file";
  EXPECT_EQ(requests, 5);
}

TEST_F(JudgeScorer, ProcessesThatAreKilledLeaveACacheThatCanBeUsed) {
  const JudgeCache cache = JudgeCache::open(folder_ / "cache").value();
  const std::string answer(100'000, 'x');
  std::vector<pid_t> writers;
  for (int w = 0; w < 4; ++w) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0;; i = (i + 1) % 20) (void)cache.store("request " + std::to_string(i), answer);
    }
    writers.push_back(child);
  }
  int found = 0;
  while (found < 200)
    for (int i = 0; i < 20; ++i)
      if (const auto stored = cache.find("request " + std::to_string(i))) {
        ++found;
        EXPECT_EQ(stored->size(), answer.size());
      }
  for (const pid_t child : writers) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  for (int i = 0; i < 20; ++i) {
    if (const auto stored = cache.find("request " + std::to_string(i))) {
      EXPECT_EQ(*stored, answer);
    }
  }
}

TEST_F(JudgeScorer, SaysWhatIsWrongBeforeTheRun) {
  const std::string url = "http://127.0.0.1:1/v1";
  EXPECT_THAT(error_of({}), HasSubstr("env.judge.url: empty; expected the address"));
  EXPECT_THAT(error_of({{"judge.url", "localhost:8000"}}),
              HasSubstr("env.judge.url: \"localhost:8000\": expected http"));
  EXPECT_THAT(error_of({{"judge.url", url}, {"judge.model", ""}}), HasSubstr("env.judge.model: empty"));
  EXPECT_THAT(error_of({{"judge.url", url}, {"judge.key_variable", "sk-secret"}}),
              AllOf(HasSubstr("env.judge.key_variable: no such environment variable"), Not(HasSubstr("sk-secret"))));
  EXPECT_THAT(error_of({{"judge.url", url}, {"judge.prompt", "{question}?"}}),
              HasSubstr("env.judge.prompt: does not show the response"));
  EXPECT_THAT(error_of({{"judge.url", url}, {"judge.prompt_file", "/nowhere"}}),
              HasSubstr("env.judge.prompt_file: /nowhere"));
  EXPECT_THAT(error_of({{"judge.url", url}, {"judge.score_pattern", "("}}), HasSubstr("env.judge.score_pattern: "));
  EXPECT_THAT(error_of({{"judge.url", url}, {"judge.lowest", "10"}}), HasSubstr("env.judge.highest: expected"));
  EXPECT_THAT(error_of({{"judge.url", url}, {"judge.extra", "[]"}}), HasSubstr("env.judge.extra"));
  EXPECT_THAT(error_of({{"judge.url", url}, {"judge.cache", folder_ / "rows.jsonl"}}), HasSubstr("env.judge.cache: "));
  EXPECT_THAT(error_of({{"judge.url", url}, {"scorers", "maths"}}), HasSubstr("env.judge: has no effect"));
  std::ofstream(folder_ / "rows.jsonl") << R"({"question": "Q"})";
  EXPECT_THAT(error_of({{"judge.url", url}}), HasSubstr("env.answer: no such column")) << "its prompt shows the answer";
  EXPECT_EQ(error_of({{"judge.url", url}, {"judge.prompt", "{response}"}}), "");
}

TEST(RetryAfter, IsSecondsOrADate) {
  const auto now = std::chrono::system_clock::from_time_t(784111777);  // Sun, 06 Nov 1994 08:49:37 GMT
  EXPECT_EQ(retry_after_seconds("120", now), 120);
  EXPECT_EQ(retry_after_seconds(" 1.5 ", now), 1.5);
  EXPECT_EQ(retry_after_seconds("Sun, 06 Nov 1994 08:50:00 GMT", now), 23);
  EXPECT_EQ(retry_after_seconds("Sun, 06 Nov 1994 08:49:00 GMT", now), 0) << "it is over";
  for (const char* garbage : {"", "-5", "nan", "soon", "Sun, 06 Nov", "1e999", "Sun, 06 Nov 1994 08:50:00 GMT+1"})
    EXPECT_EQ(retry_after_seconds(garbage, now), 0) << garbage;
}

}  // namespace
}  // namespace carnot
