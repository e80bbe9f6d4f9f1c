#include "carnot/core/rollout/rollout_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/data/group_bytes.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

Rollout rollout() {
  Tree tree{.turns = {{.tokens = {3, 4, 5}, .sampled_begin = 1, .sampled_end = 3, .policy_version = 7}},
            .leaves = {{.turn = 0}}};
  tree.turns[0].spans = {{SpanKind::Prompt, 0, 1}, {SpanKind::Action, 1, 3}};
  for (const Column column : {Column::LogProbRollout, Column::EntropyRollout})
    tree.columns.edit(column, 0, 3)[1] = -0.5;
  Rollout made{.groups = {{.uid = "train_9", .task_index = 9, .seed = 1, .step = 2, .trees = {tree}}},
               .metrics = {.trajectories = 1, .sampled_tokens = 2, .seconds = 0.5, .seconds_environment = 0.25},
               .failures = {"one", ""}};
  return made;
}

std::vector<RolloutTask> tasks() { return {{.uid = "train_9", .task_index = 9}}; }

Status checked(const Rollout& made, std::optional<int> newest_version = {}) {
  const auto asked = tasks();
  return check_rollout(made, {.tasks = asked,
                              .key = {.seed = 1, .step = 2, .policy_version = 7},
                              .newest_version = newest_version,
                              .vocabulary = 6});
}

TEST(RolloutBytes, KeepEveryMember) {
  const Rollout made = rollout();
  const std::string bytes = bytes_of_rollout(made);
  const Rollout read = rollout_of_bytes(bytes).value();
  EXPECT_EQ(bytes_of_rollout(read), bytes);
  EXPECT_EQ(bytes_of_groups(read.groups), bytes_of_groups(made.groups));
  EXPECT_EQ(read.failures, made.failures);
  EXPECT_EQ(read.metrics.sampled_tokens, 2);
  EXPECT_EQ(read.metrics.seconds_environment, 0.25);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(rollout_of_bytes(std::string_view(bytes).substr(0, size)));
}

TEST(RolloutMetrics, OfPartsAddUpCountsAndTakeTheLongestOrTheSumOfTimes) {
  const RolloutMetrics one{.trajectories = 2, .seconds = 3, .seconds_forward = 1};
  const RolloutMetrics other{.trajectories = 5, .evictions = 1, .seconds = 2, .seconds_forward = 1.5};
  RolloutMetrics longest = one, added = one;
  add_metrics(longest, other, PartTimes::Longest);
  add_metrics(added, other, PartTimes::Added);
  for (const RolloutMetrics& both : {longest, added}) {
    EXPECT_EQ(both.trajectories, 7);
    EXPECT_EQ(both.evictions, 1);
  }
  EXPECT_EQ(longest.seconds, 3);
  EXPECT_EQ(longest.seconds_forward, 1.5);
  EXPECT_EQ(added.seconds, 5);
  EXPECT_EQ(added.seconds_forward, 2.5);
}

TEST(CheckRollout, AcceptsOnlyWhatWasAskedFor) {
  EXPECT_TRUE(checked(rollout()));
  Rollout wrong = rollout();
  wrong.groups[0].uid = "train_8";
  EXPECT_THAT(checked(wrong).error().message, HasSubstr("is another task's: train_8"));
  wrong = rollout();
  wrong.groups[0].trees[0].turns[0].tokens[2] = 6;
  EXPECT_THAT(checked(wrong).error().message, HasSubstr("token 6; expected ids below 6"));
  wrong = rollout();
  wrong.groups[0].trees[0].turns[0].policy_version = 6;
  EXPECT_THAT(checked(wrong).error().message, HasSubstr("sampled by version 6; expected 7"));
  wrong.groups[0].trees[0].turns[0].policy_version = 9;
  EXPECT_TRUE(checked(wrong, 9));
  EXPECT_THAT(checked(wrong, 8).error().message, HasSubstr("sampled by version 9; expected 7 to 8"));
  wrong = rollout();
  wrong.groups[0].trees[0].columns.clear(Column::LogProbRollout);
  EXPECT_THAT(checked(wrong).error().message, HasSubstr("no column logp_rollout"));
  wrong = rollout();
  wrong.groups[0].trees.clear();
  EXPECT_THAT(checked(wrong).error().message, HasSubstr("no trajectory"));
  wrong = rollout();
  wrong.groups.push_back(wrong.groups[0]);
  EXPECT_THAT(checked(wrong).error().message, HasSubstr("2 groups; expected 1"));
  wrong = rollout();
  wrong.stopped = true;
  EXPECT_FALSE(checked(wrong));
}

}  // namespace
}  // namespace carnot
