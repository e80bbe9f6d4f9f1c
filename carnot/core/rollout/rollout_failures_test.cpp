// What a rollout makes of environments that throw, hang, break bounds or ask for what does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "carnot/core/base/check.h"
#include "testing/hang.h"
#include "testing/scripted_rollout.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

TEST(Rollout, AnEnvironmentThatThrowsFailsItsOwnTrajectoriesOnly) {
  std::vector<RolloutTask> tasks = scripted_tasks(3, {});
  const Rollout healthy = roll_out_scripted(tasks, with_budget(2));
  tasks[1] = scripted_tasks(3, {.throws_at = 1})[1];
  const Rollout out = roll_out_scripted(tasks, with_budget(2));
  expect_sound(out);
  for (const Trajectory& trajectory : trajectories(out.groups)) {
    if (trajectory.group_index != 1) continue;
    EXPECT_EQ(trajectory.leaf().outcome, Outcome::InfraFailed);
    EXPECT_EQ(trajectory.num_turns(), 2);
    EXPECT_EQ(trajectory.turn(1).status, "infra_failed");
  }
  EXPECT_EQ(out.metrics.infra_failures, 2);
  EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr("the world broke")));
  Rollout others = healthy, kept = out;
  others.groups.erase(others.groups.begin() + 1);
  kept.groups.erase(kept.groups.begin() + 1);
  EXPECT_EQ(described(kept), described(others));
}

TEST(Rollout, ReportsFailuresInTheOrderOfTasksAndTrajectoriesWhicheverCameFirst) {
  std::vector<RolloutTask> tasks = scripted_tasks(2, {.throws_at = 3});
  tasks[1] = scripted_tasks(2, {.throws_at = 1})[1];
  const Rollout out = roll_out_scripted(tasks, with_budget(2));
  ASSERT_EQ(out.failures.size(), 4U);
  EXPECT_THAT(out.failures[0], ::testing::StartsWith("task-0, trajectory 0, turn 3"));
  EXPECT_THAT(out.failures[1], ::testing::StartsWith("task-0, trajectory 1, turn 3"));
  EXPECT_THAT(out.failures[2], ::testing::StartsWith("task-1, trajectory 0, turn 1"));
  EXPECT_THAT(out.failures[3], ::testing::StartsWith("task-1, trajectory 1, turn 1"));
}

TEST(Rollout, AnEnvironmentThatDoesNotOpenFailsItsWholeGroup) {
  std::vector<RolloutTask> tasks = scripted_tasks(2, {});
  tasks[0] = scripted_tasks(2, {.opens = false})[0];
  const Rollout out = roll_out_scripted(tasks, with_budget(3));
  expect_sound(out);
  EXPECT_EQ(leaves_of(out.groups[0]), 3);
  EXPECT_EQ(out.metrics.infra_failures, 3);
  EXPECT_EQ(out.failures, std::vector<std::string>{"task-0: no such world"});
  EXPECT_EQ(out.groups[1].trees[0].leaves[0].outcome, Outcome::Finished);
}

TEST(Rollout, AHangingEnvironmentCostsItsDeadlineButNotTheRollout) {
  const testing::Hang hang;
  std::vector<RolloutTask> tasks = scripted_tasks(3, {});
  tasks[2] = scripted_tasks(3, {.hangs_at = 1, .hang = hang.call()})[2];
  RolloutSetting setting = with_budget(2);
  setting.options.environment_timeout = 1;
  setting.options.environment_threads = 1;
  const Rollout out = roll_out_scripted(tasks, setting);
  EXPECT_EQ(hang.inside(), 2) << "the rollout waited for neither";
  EXPECT_EQ(out.metrics.infra_failures, 2);
  EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr("no answer within")));
  for (std::size_t g = 0; g < 2; ++g)
    for (const Tree& tree : out.groups[g].trees) EXPECT_EQ(tree.leaves[0].outcome, Outcome::Finished);
}

TEST(Rollout, AReplyOutOfBoundsFailsItsTrajectoryAndIsNoReward) {
  for (const double bad : {std::nan(""), HUGE_VAL, 1e308}) {
    std::vector<RolloutTask> tasks = scripted_tasks(2, {});
    tasks[1] = scripted_tasks(2, {.change = [bad](int turn, Reply& reply) {
                                if (turn == 2) reply.reward = bad;
                              }})[1];
    tasks[1].environment = "hash_world";
    const Rollout out = roll_out_scripted(tasks, with_budget(2));
    expect_sound(out);
    EXPECT_EQ(out.metrics.infra_failures, 2);
    for (const Trajectory& trajectory : trajectories(out.groups)) {
      EXPECT_EQ(trajectory.leaf().valid(), trajectory.group_index == 0);
      EXPECT_TRUE(std::isfinite(trajectory.leaf().score));
    }
    EXPECT_THAT(out.failures, ::testing::Each(::testing::StartsWith("task-1 (hash_world), trajectory ")));
    EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr(", turn 1: reply.reward is ")));
  }
}

TEST(Rollout, AStringThatTheSplitPatternCannotHandleFailsItsOwnTrajectories) {
  const auto chat = make_chat_family("chatml", backtracking_tokenizer()).value();
  HashRunner model(backtracking_tokenizer().vocab_size(), 2000);
  Engine engine(model, {});
  std::vector<RolloutTask> tasks = scripted_tasks(4, {});
  const auto answer = [](int turn, Reply& reply) {
    if (turn == 2) reply.text = kBacktracks;
  };
  tasks[1] = scripted_tasks(4, {.change = answer})[1];
  tasks[2] = scripted_tasks(4, {.form = ReplyForm::Inline, .change = answer})[2];
  tasks[3] = scripted_tasks(4, {.prefix = kBacktracks})[3];
  const Rollout out = roll_out(engine, *chat, *independent(), tasks, with_budget(2).options, kRolloutKey);
  expect_sound(out);
  EXPECT_EQ(out.metrics.infra_failures, 6);
  for (const Trajectory& trajectory : trajectories(out.groups))
    EXPECT_EQ(trajectory.leaf().valid(), trajectory.group_index == 0);
  ASSERT_EQ(out.failures.size(), 5u) << "one for the group that has no prompt";
  EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr("cannot be tokenised: the split pattern takes more")));
  EXPECT_THAT(out.failures[0], ::testing::StartsWith("task-1, trajectory 0, turn 1: the reply "));
  EXPECT_THAT(out.failures[4], ::testing::StartsWith("task-3: the prompt "));
  EXPECT_EQ(engine.free_blocks(), 2000);
}

TEST(Rollout, AReplyThatIsTooLongIsNotTokenised) {
  const auto tasks = scripted_tasks(1, {.change = [](int, Reply& reply) { reply.text.assign(30'000'000, 'x'); }});
  const Rollout out = roll_out_scripted(tasks, with_budget(2));
  EXPECT_EQ(out.metrics.infra_failures, 2);
  EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr("reply.text has 30000000 bytes")));
}

TEST(Rollout, ABugInAnEnvironmentEndsTheRolloutWithItsMessage) {
  const auto roll_out_with = [](const ScriptedOptions& options) {
    std::string message = "nothing was thrown";
    HashRunner model(small_tokenizer().vocab_size(), 2000);
    Engine engine(model, {});
    try {
      roll_out(engine, small_chat(), *independent(), scripted_tasks(2, options), with_budget(2).options, kRolloutKey);
    } catch (const CheckError& bug) {
      message = bug.what();
    }
    return message;
  };
  EXPECT_THAT(roll_out_with({.change = [](int turn, Reply&) { CARNOT_CHECK_LT(turn, 2); }}),
              ::testing::HasSubstr("check failed: turn < 2 (2 and 2)"));
}

TEST(Rollout, ToolsThatTheFormatCannotOfferFailTheGroupWithASentence) {
  const std::vector<RolloutTask> tasks = scripted_tasks(1, {.tools = {{.name = "look up"}}});
  const Rollout unnamed = roll_out_scripted(tasks, with_budget(2));
  EXPECT_EQ(unnamed.metrics.infra_failures, 2);
  EXPECT_THAT(unnamed.failures, ::testing::ElementsAre(::testing::HasSubstr("a tool's name is \"look up\"")));
}

TEST(Rollout, ACacheThatCannotHoldOneTrajectoryIsAnInfrastructureFailure) {
  RolloutSetting setting = with_budget(2);
  setting.num_blocks = 7;
  const Rollout out = roll_out_scripted(scripted_tasks(1, {}), setting);
  expect_sound(out);
  EXPECT_EQ(out.metrics.infra_failures, 2);
  EXPECT_THAT(out.failures[0], ::testing::HasSubstr("does not fit into the KV cache"));
}

}  // namespace
}  // namespace carnot
