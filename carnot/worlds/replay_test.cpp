
#include <gtest/gtest.h>

#include <atomic>

#include "carnot/core/env/environment_boundary.h"
#include "testing/scripted_environment.h"

namespace carnot {
namespace {

using testing::ScriptedEnvironment;
using testing::ScriptedOptions;

std::function<std::unique_ptr<Environment>()> maker(const ScriptedOptions& options) {
  return [options] { return std::make_unique<ScriptedEnvironment>(options, 3); };
}

std::vector<PlayedTurn> play(Environment& environment, const std::vector<std::string>& responses) {
  environment.open();
  std::vector<PlayedTurn> turns;
  for (const std::string& response : responses)
    turns.push_back({.response = response, .reply_key = key_of(environment.step(response))});
  return turns;
}

TEST(Replay, GoesOnAsTheOriginalDoes) {
  const auto make = maker({});
  const auto original = make();
  const auto again = replay(make, play(*original, {"a", "b", "c"}));
  EXPECT_EQ(again->anchor(), original->anchor());
  EXPECT_EQ(key_of(again->step("d")), key_of(original->step("d")));
}

TEST(Replay, FailsWhereTheAnswerIsAnotherOne) {
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const auto make = maker({.change = [calls](int, Reply& reply) { reply.reward = (*calls)++; }});
  const auto turns = play(*make(), {"a"});
  EXPECT_THROW(replay(make, turns), EnvironmentFailure);
}

TEST(Replay, RepliesOfEqualMeaningHaveEqualKeys) {
  Reply reply{.text = "a", .reward = 1};
  const std::uint64_t key = key_of(reply);
  reply.measures["seconds"] = 3;
  EXPECT_EQ(key_of(reply), key) << "measures are about the end";
  for (const auto& change : std::vector<std::function<void(Reply&)>>{
           [](Reply& other) { other.text = "b"; }, [](Reply& other) { other.reward = 2; },
           [](Reply& other) { other.form = ReplyForm::Inline; }, [](Reply& other) { other.done = true; },
           [](Reply& other) { other.results = {{.text = "a"}}; }}) {
    Reply other = reply;
    change(other);
    EXPECT_NE(key_of(other), key);
  }
  Reply fresh{.form = ReplyForm::FreshPrompt, .prompt = {.user = "a"}};
  const std::uint64_t fresh_key = key_of(fresh);
  fresh.prompt.history.push_back({.role = "user", .content = "b"});
  EXPECT_NE(key_of(fresh), fresh_key);
}

}  // namespace
}  // namespace carnot
