#include "carnot/serving/api_policy/episodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "carnot/core/base/json.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/env/react.h"
#include "testing/field_settings.h"
#include "testing/hang.h"
#include "testing/local_http_server.h"
#include "testing/scripted_environment.h"

namespace carnot {
namespace {

using testing::GivenAnswer;
using ::testing::HasSubstr;
using testing::LocalHttpServer;
using testing::ReceivedRequest;
using testing::ScriptedEnvironment;
using testing::ScriptedOptions;

GivenAnswer says(const std::string& text, const std::string& finish = "stop") {
  return {.body = Json{{"choices", Json::array({{{"message", {{"role", "assistant"}, {"content", text}}},
                                                 {"finish_reason", finish}}})},
                       {"usage", {{"prompt_tokens", 10}, {"completion_tokens", 3}}}}
                      .dump()};
}

std::shared_ptr<ChatEndpoint> endpoint_at(const LocalHttpServer& server, int retries = 0) {
  ChatEndpointOptions options{
      .url = server.url("/v1"), .model = "m", .timeout = 20, .retries = retries, .first_pause = 0.001};
  return std::shared_ptr<ChatEndpoint>(ChatEndpoint::open(options, "endpoint.").value());
}

std::vector<EndpointTask> scripted(int count, const ScriptedOptions& options) {
  std::vector<EndpointTask> tasks;
  for (int i = 0; i < count; ++i)
    tasks.push_back(
        {.uid = "task_" + std::to_string(i), .environment = "scripted", .task_index = i, .make = [options, i] {
           return std::make_unique<ScriptedEnvironment>(options, static_cast<std::uint64_t>(i));
         }});
  return tasks;
}

/// Keeps the bodies of all requests.
struct Heard {
  std::mutex mutex{};
  std::vector<Json> bodies{};
  void add(const ReceivedRequest& request) {
    const std::lock_guard lock(mutex);
    bodies.push_back(Json::parse(request.body));
  }
};

TEST(EndpointEpisodes, AreConversationsOfMessages) {
  Heard heard;
  const LocalHttpServer server([&](const ReceivedRequest& request) {
    heard.add(request);
    return says("x");
  });
  const auto tasks = scripted(1, {.turns = 2, .prefix = ""});
  const auto result = play_episodes(endpoint_at(server), tasks, {.episode = {.model = "m", .temperature = 0}});
  ASSERT_EQ(heard.bodies.size(), 2u);
  const Json& first = heard.bodies[0];
  EXPECT_EQ(first.at("model"), "m");
  EXPECT_EQ(first.at("max_tokens"), 12) << "the environment's limit";
  EXPECT_EQ(first.at("stop"), Json::array({"z"}));
  EXPECT_FALSE(first.contains("seed"));
  EXPECT_EQ(first.at("messages").at(0), (Json{{"role", "system"}, {"content", "be brief"}}));
  EXPECT_EQ(first.at("messages").at(1), (Json{{"role", "user"}, {"content", "task 0"}}));
  const Json& second = heard.bodies[1].at("messages");
  ASSERT_EQ(second.size(), 4u);
  EXPECT_EQ(second.at(2), (Json{{"role", "assistant"}, {"content", "x"}}));
  EXPECT_THAT(second.at(3).at("content").get<std::string>(), HasSubstr("heard "));

  ScriptedEnvironment same({.turns = 2, .prefix = ""}, 0);
  same.open();
  const double expected = same.step("x").reward + same.step("x").reward;
  ASSERT_EQ(result.groups.size(), 1u);
  const Tree& tree = result.groups[0].trees.at(0);
  EXPECT_EQ(tree.leaves[0].score, expected);
  EXPECT_TRUE(tree.leaves[0].success);
  EXPECT_EQ(tree.leaves[0].measures.at("turns"), 2);
  EXPECT_EQ(trajectory(result.groups[0], 0, 0, 0).num_turns(), 2);
  EXPECT_EQ(result.groups[0].ground_truth, std::vector<std::string>{"yes"});
  EXPECT_EQ(result.cost.answers, 2);
  EXPECT_EQ(result.cost.tokens.prompt, 20);
  EXPECT_EQ(result.cost.tokens.completion, 6);
  ASSERT_EQ(result.transcripts.size(), 1u);
  const Json line = Json::parse(result.transcripts[0]);
  EXPECT_EQ(line.at("outcome"), "finished");
  EXPECT_EQ(line.at("messages").size(), 5u);
}

TEST(EndpointEpisodes, PutWhatTheServerLeavesOutBackIntoAResponse) {
  Heard heard;
  const LocalHttpServer server([&](const ReceivedRequest& request) {
    heard.add(request);
    return says("I search. </think><search> Lima");
  });
  const auto tasks = scripted(1, {.turns = 2, .stop_strings = {"</search>"}, .form = ReplyForm::Inline});
  play_episodes(endpoint_at(server), tasks, {});
  const Json& messages = heard.bodies.at(1).at("messages");
  EXPECT_EQ(messages.at(2).at("content"), "<think>I search. </think><search> Lima</search>");
  EXPECT_EQ(messages.at(3).at("role"), "user") << "what would continue the message is the next one";
  EXPECT_TRUE(heard.bodies[0].contains("seed"));
  EXPECT_NE(heard.bodies[0].at("seed"), heard.bodies[1].at("seed"));
}

TEST(EndpointEpisodes, BeginAnewAndCallToolsWhereTheEnvironmentWantsIt) {
  Heard heard;
  const LocalHttpServer server([&](const ReceivedRequest& request) -> GivenAnswer {
    heard.add(request);
    return {.body = R"({"choices": [{"message": {"content": null, "tool_calls": [
        {"id": "call00001", "function": {"name": "look", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}]})"};
  });
  ScriptedOptions options{.turns = 3, .prefix = "", .tools = {{.name = "look", .description = "looks"}}};
  options.change = [](int turn, Reply& reply) {
    if (turn == 1) {
      reply.form = ReplyForm::ToolResult;
      reply.results = {{.call_id = "call00001", .text = "a lamp"}};
    } else if (turn == 2) {
      reply.form = ReplyForm::FreshPrompt;
      reply.prompt = {.user = "a new page"};
    }
  };
  play_episodes(endpoint_at(server), scripted(1, options), {});
  ASSERT_EQ(heard.bodies.size(), 3u);
  EXPECT_EQ(heard.bodies[0].at("tools").at(0).at("function").at("name"), "look");
  const Json& second = heard.bodies[1].at("messages");
  EXPECT_EQ(second.at(2).at("tool_calls").at(0).at("id"), "call00001");
  EXPECT_EQ(second.at(3), (Json{{"role", "tool"}, {"content", "a lamp"}, {"tool_call_id", "call00001"}}));
  EXPECT_EQ(heard.bodies[2].at("messages"), Json::array({{{"role", "user"}, {"content", "a new page"}}}));
  EXPECT_FALSE(heard.bodies[2].contains("tools"));
}

TEST(EndpointEpisodes, EndWhereTurnsOrTokensDo) {
  const LocalHttpServer server([&](const ReceivedRequest&) { return says("x", "length"); });
  const auto outcome = [&](const ScriptedOptions& options, const EndpointEpisodeOptions& episode) {
    return play_episodes(endpoint_at(server), scripted(1, options), {.episode = episode})
        .groups[0]
        .trees[0]
        .leaves[0]
        .outcome;
  };
  EXPECT_EQ(outcome({.turns = 9, .max_turns = 3}, {}), Outcome::OutOfTurns);
  EXPECT_EQ(outcome({.turns = 9}, {.max_turns = 2}), Outcome::OutOfTurns);
  EXPECT_EQ(outcome({.turns = 9}, {.max_context_tokens = 13}), Outcome::OutOfTokens);
  EXPECT_EQ(outcome({.turns = 1, .succeeds = false}, {}), Outcome::OutOfTokens) << "the last response was cut";
  EXPECT_EQ(outcome({.turns = 1}, {}), Outcome::Finished);
}

TEST(EndpointEpisodes, LoseOnlyThoseWhoseServerOrEnvironmentFails) {
  const LocalHttpServer server([&](const ReceivedRequest& request) -> GivenAnswer {
    if (request.body.find("task 1") != std::string::npos) return {.status = 500, .body = "out of memory"};
    return says("x");
  });
  const testing::Hang hang;
  auto tasks = scripted(4, {.turns = 2});
  ScriptedOptions throwing{.turns = 2, .throws_at = 1}, hanging{.turns = 2, .hangs_at = 1, .hang = hang.call()};
  tasks[2].make = [throwing] { return std::make_unique<ScriptedEnvironment>(throwing, 2); };
  tasks[3].make = [hanging] { return std::make_unique<ScriptedEnvironment>(hanging, 3); };
  const auto endpoint = endpoint_at(server, 1);
  const auto result = play_episodes(endpoint, tasks, {.turn_timeout = 1});
  const auto leaf = [&](std::size_t i) { return result.groups[i].trees[0].leaves[0]; };
  EXPECT_EQ(leaf(0).outcome, Outcome::Finished);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(leaf(i).outcome, Outcome::InfraFailed) << i;
    EXPECT_FALSE(leaf(i).success);
  }
  ASSERT_EQ(result.failures.size(), 3u);
  EXPECT_THAT(result.failures[0], HasSubstr("task_1 (scripted), trajectory 0: endpoint.url: POST "));
  EXPECT_THAT(result.failures[0], HasSubstr("status 500: out of memory, after 2 requests"));
  EXPECT_THAT(result.failures[1], HasSubstr("the world broke"));
  EXPECT_EQ(endpoint->requests(), 2 + 2 + 2 + 2);
}

TEST(EndpointEpisodes, AreAsManyAtATimeAsWanted) {
  std::atomic<int> now = 0, most = 0;
  const LocalHttpServer server([&](const ReceivedRequest&) {
    most = std::max<int>(most, ++now);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --now;
    return says("x");
  });
  std::int64_t reported = 0;
  const auto result = play_episodes(endpoint_at(server), scripted(6, {.turns = 3}), {.samples = 2, .concurrency = 3},
                                    {.on_progress = [&](std::int64_t ended) { reported = ended; }});
  EXPECT_LE(most, 3);
  EXPECT_EQ(reported, 12);
  ASSERT_EQ(result.groups.size(), 6u);
  for (const Group& group : result.groups) {
    ASSERT_EQ(group.trees.size(), 2u);
    EXPECT_EQ(group.trees[0].leaves[0].score, group.trees[1].leaves[0].score) << "the same task, the same responses";
    EXPECT_EQ(group.trees[1].leaves[0].sibling, 1);
  }
  const auto stopped = play_episodes(endpoint_at(server), scripted(6, {}), {}, {.go_on = [] { return false; }});
  EXPECT_TRUE(stopped.stopped);
  EXPECT_TRUE(stopped.groups.empty());
}

/// A model that guesses the middle of what is left, in ReAct's form.
std::string guess(const Json& messages) {
  int low = 1, high = 20, last = 0;
  for (const Json& message : messages) {
    const std::string text = message.at("content").get<std::string>();
    if (message.at("role") == "assistant") last = std::stoi(text.substr(text.find("Action: ") + 8));
    if (text.find("too low") != std::string::npos) low = last + 1;
    if (text.find("too high") != std::string::npos) high = last - 1;
  }
  return "Thought: the middle.\nAction: " + std::to_string((low + high) / 2);
}

TEST(EndpointEpisodes, SolveAnEnvironmentInReactsForm) {
  const LocalHttpServer server(
      [&](const ReceivedRequest& request) { return says(guess(Json::parse(request.body).at("messages"))); });
  const std::shared_ptr<EnvironmentFactory> factory = make_environment_factory("skeleton").value();
  testing::FieldSettings fields({{"largest", "20"}, {"max_turns", "6"}});
  factory->fields(fields);
  ASSERT_TRUE(factory->prepare(5).ok());
  std::vector<EndpointTask> tasks;
  for (std::int64_t i = 0; i < 5; ++i)
    tasks.push_back({.uid = std::to_string(i), .task_index = i, .make = [factory, i] {
                       return make_react(factory->make(Split::Validation, i), factory->answer_lead());
                     }});
  const auto result = play_episodes(endpoint_at(server), tasks, {});
  for (const Group& group : result.groups) {
    EXPECT_TRUE(group.trees[0].leaves[0].success) << group.uid;
    EXPECT_EQ(group.trees[0].leaves[0].measures.at("unreadable_steps"), 0);
  }
}

TEST(WithClosingTag, ClosesTheTagThatIsOpen) {
  const std::vector<std::string> stops{"</search>", "</answer>", "z"};
  EXPECT_EQ(with_closing_tag("a <search> b", stops), "a <search> b</search>");
  EXPECT_EQ(with_closing_tag("<search> b</search> <answer> c", stops), "<search> b</search> <answer> c</answer>");
  EXPECT_EQ(with_closing_tag("<answer> <search> c", stops), "<answer> <search> c</search>");
  for (const char* whole : {"", "a", "<search> b</search>", "</search>", "search> b"})
    EXPECT_EQ(with_closing_tag(whole, stops), whole);
}

}  // namespace
}  // namespace carnot
