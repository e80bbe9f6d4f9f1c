// Agents written elsewhere, as real processes: their requests become turns exactly, and no fault becomes a reward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/env/environment_boundary.h"
#include "carnot/http/client.h"
#include "carnot/http/server.h"
#include "carnot/worlds/entries.h"
#include "testing/prepared_environment.h"
#include "testing/scripted_rollout.h"

namespace carnot {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kHarness = std::string(CARNOT_SOURCE_DIR) + "/tests/agent/arithmetic_harness.py";

Result<std::shared_ptr<EnvironmentFactory>> agent(const std::vector<std::string>& settings) {
  return testing::prepared(make_agent(), settings);
}

std::string harness(const std::string& mode) { return "command=[python3, " + kHarness + ", " + mode + "]"; }

TEST(AgentEnvironment, TheHarnessesCallsAreTheConversation) {
  const auto factory = agent({harness("plain")}).value();
  const auto environment = factory->make(Split::Train, 4);
  const Opening opening = environment->open();
  EXPECT_EQ(opening.system, "You add.");
  ASSERT_EQ(opening.history.size(), 1u);
  EXPECT_EQ(opening.history[0].content, "Task 4: None");
  const Reply reply = environment->step("Seven");
  EXPECT_EQ(reply.form, ReplyForm::UserMessage);
  EXPECT_EQ(reply.text, "Are you sure?");
  const Reply last = environment->step("Yes");
  EXPECT_TRUE(last.done && last.success);
  EXPECT_EQ(last.reward, 1.5);
  EXPECT_EQ(last.measures.at("conversations"), 1);
}

TEST(AgentEnvironment, RewardsByHttpTakePrecedence) {
  const auto environment = agent({harness("http")}).value()->make(Split::Train, 0);
  environment->open();
  environment->step("a");
  const Reply last = environment->step("b");
  EXPECT_TRUE(last.done && !last.success);
  EXPECT_EQ(last.reward, 0.25);
  EXPECT_EQ(last.measures.at("asked"), 2);
}

TEST(AgentEnvironment, CallsOfFunctionsAndTheirResultsAreTurns) {
  const auto environment = agent({harness("tools")}).value()->make(Split::Train, 0);
  const Opening opening = environment->open();
  ASSERT_EQ(opening.tools.size(), 1u);
  EXPECT_EQ(opening.tools[0].name, "look_up");
  PolicyResponse response("<tool_call>...</tool_call>");
  response.tool_calls = {{.name = "look_up", .arguments = R"({"word": "a"})"}};
  const Reply reply = environment->step(response);
  EXPECT_EQ(reply.form, ReplyForm::ToolResult);
  ASSERT_EQ(reply.results.size(), 1u);
  EXPECT_EQ(reply.results[0].text, "found it");
  EXPECT_EQ(reply.tool, "look_up");
  EXPECT_TRUE(environment->step("done").done);
}

TEST(AgentEnvironment, AnotherConversationIsAFreshPrompt) {
  const auto environment = agent({harness("several")}).value()->make(Split::Train, 0);
  environment->open();
  const Reply other = environment->step("Seven");
  EXPECT_EQ(other.form, ReplyForm::FreshPrompt);
  EXPECT_EQ(other.prompt.history.at(0).content, "Another question");
  const Reply back = environment->step("Eight");
  EXPECT_EQ(back.form, ReplyForm::FreshPrompt);
  ASSERT_EQ(back.prompt.history.size(), 3u);
  EXPECT_EQ(back.prompt.history[1].content, "Seven");
  EXPECT_EQ(back.prompt.history[2].content, "Back again");
  EXPECT_EQ(environment->step("Nine").measures.at("conversations"), 3);
}

TEST(AgentEnvironment, TasksComeFromFiles) {
  const std::string file = ::testing::TempDir() + "agent_tasks.jsonl";
  ASSERT_TRUE(write_file_atomically(file, "{\"sum\": [1, 2]}\n\n{\"sum\": [3, 4]}\n").ok());
  const auto factory = agent({harness("plain"), "train_file=" + file}).value();
  EXPECT_EQ(factory->make(Split::Validation, 1)->open().history[0].content, "Task 1: {'sum': [3, 4]}");
  ASSERT_TRUE(write_file_atomically(file, "5\n{\n").ok());
  const auto bad = agent({harness("plain"), "train_file=" + file});
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().message, AllOf(HasSubstr(file + ":1"), HasSubstr(file + ":2")));
}

std::string failure_of(const std::vector<std::string>& settings) {
  const auto environment = agent(settings).value()->make(Split::Train, 0);
  try {
    environment->open();
    environment->step("a");
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "";
}

TEST(AgentEnvironment, NoFaultBecomesAReward) {
  EXPECT_THAT(failure_of({harness("kill")}), HasSubstr("the harness was killed by signal 9"));
  EXPECT_THAT(failure_of({harness("hang"), "timeout=0.3"}), HasSubstr("the harness did nothing for"));
  EXPECT_THAT(failure_of({harness("garbage")}), HasSubstr("exited with status 0 without a reward"));
  EXPECT_THAT(failure_of({harness("nan")}), HasSubstr("without a reward"));
  EXPECT_THAT(failure_of({harness("status")}), HasSubstr("exited with status 3: a reason"));
  EXPECT_THAT(failure_of({harness("early")}), HasSubstr("before it asked anything"));
  EXPECT_THAT(failure_of({"command=[no_such_program]"}), HasSubstr("cannot start \"no_such_program\""));
  EXPECT_THAT(failure_of({"start_timeout=0.2"}), HasSubstr("the harness did nothing for"));
}

/// A port on which nothing listens, as far as can be known.
int free_port() {
  const auto server = HttpServer::start({}, [](const HttpCall&, const HttpConnection&) { return HttpReply{}; });
  return server.value()->port();
}

json posted(const std::string& url, const std::string& body, int status = 200) {
  const auto answer = http_exchange({.method = "POST", .url = parse_url(url).value(), .body = body});
  EXPECT_TRUE(answer.ok() && answer->status == status) << (answer ? answer->body : answer.error().message);
  return answer ? json::parse(answer->body, nullptr, false) : json();
}

TEST(AgentEnvironment, AnExternallyStartedHarnessRequestsAnEpisode) {
  const int port = free_port();
  const auto factory = agent({"port=" + std::to_string(port)}).value();
  auto environment = factory->make(Split::Train, 7);
  std::thread harness([&] {
    const json episode = posted("http://127.0.0.1:" + std::to_string(port) + "/episode", "");
    EXPECT_EQ(episode["index"], 7);
    const std::string url = episode["base_url"], reward = episode["reward_url"];
    const std::string body = R"({"messages": [{"role": "user", "content": "Hi"}], "stream": true})";
    const auto streamed =
        http_exchange({.method = "POST", .url = parse_url(url + "/chat/completions").value(), .body = body});
    EXPECT_THAT(streamed.value().body, AllOf(HasSubstr("\"content\":\"Hello\""), HasSubstr("data: [DONE]")));
    EXPECT_THAT(
        posted(url + "/chat/completions", R"({"messages": [], "n": 3})", 400)["error"]["message"].get<std::string>(),
        HasSubstr("messages"));
    posted(reward, R"({"reward": "much"})", 400);
    posted(reward, R"({"reward": 2})");
    posted(reward, R"({"reward": 3})", 409);
  });
  EXPECT_EQ(environment->open().history.at(0).content, "Hi");
  const Reply last = environment->step("Hello");
  harness.join();
  EXPECT_TRUE(last.done);
  EXPECT_EQ(last.reward, 2);
  environment.reset();
}

TEST(AgentEnvironment, RollsOutTheTokensOfItsCallsAndLeavesFaultsOut) {
  for (const std::string mode : {"plain", "several", "kill"}) {
    const auto factory = agent({harness(mode)}).value();
    std::vector<RolloutTask> tasks;
    for (int i = 0; i < 2; ++i)
      tasks.push_back({.uid = "task-" + std::to_string(i), .environment = "agent", .task_index = i, .make = [=] {
                         return factory->make(Split::Train, i);
                       }});
    testing::RolloutSetting setting = testing::with_budget(2);
    setting.options.environment_threads = 4;
    setting.options.episode.max_response_tokens = 6;
    const Rollout rollout = testing::roll_out_scripted(tasks, setting);
    testing::expect_sound(rollout);
    testing::expect_tokens_of_the_reference(rollout);
    for (const Group& group : rollout.groups)
      for (const Tree& tree : group.trees)
        for (int l = 0; l < static_cast<int>(tree.leaves.size()); ++l) {
          const Leaf& leaf = tree.leaves[static_cast<std::size_t>(l)];
          EXPECT_EQ(leaf.is_included(), mode != "kill");
          EXPECT_EQ(leaf.score, mode == "kill" ? 0 : 1.5);
          const std::size_t turns = path(tree, l).size();
          EXPECT_EQ(turns, mode == "plain" ? 2u : mode == "several" ? 3u : 1u);
          if (mode == "several") {
            EXPECT_EQ(tree.turns.back().context, Context::Fresh);
          }
        }
  }
}

}  // namespace
}  // namespace carnot
