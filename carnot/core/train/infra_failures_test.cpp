#include "carnot/core/train/infra_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/log.h"

namespace carnot {
namespace {

Group group_of(int good, int failed) {
  Group group;
  for (int i = 0; i < good + failed; ++i) {
    Tree tree;
    tree.leaves.push_back({.outcome = i < good ? Outcome::OutOfTokens : Outcome::InfraFailed});
    group.trees.push_back(std::move(tree));
  }
  return group;
}

TEST(InfraFailures, AreCountedOverAllGroups) {
  const FailureCount count = count_failures({group_of(3, 1), group_of(0, 4)});
  EXPECT_EQ(count.failed, 5);
  EXPECT_EQ(count.all, 8);
}

TEST(InfraFailures, MayReachTheLimitButNotExceedIt) {
  EXPECT_TRUE(check_failures({.failed = 4, .all = 8}, 0.5, {}).ok());
  EXPECT_TRUE(check_failures({.failed = 0, .all = 8}, 0, {}).ok());
  EXPECT_TRUE(check_failures({.failed = 8, .all = 8}, 1, {}).ok());
  EXPECT_TRUE(check_failures({}, 0, {}).ok());
  const Status refused = check_failures({.failed = 5, .all = 8}, 0.5, {"train_3: no such world", "train_4: too"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "5 of 8 trajectories were lost to infrastructure failures, more than the share of 0.5 that "
            "train.max_infra_failures allows. The first: train_3: no such world");
}

/// So many trajectories whose prompt filled the context, and so many with a sampled token.
std::vector<Group> groups_with(int empty, int answered) {
  Group group;
  for (int i = 0; i < empty + answered; ++i)
    group.trees.push_back({.turns = {{.tokens = {1, 2}, .sampled_begin = 1, .sampled_end = i < empty ? 1 : 2}},
                           .leaves = {{.turn = 0, .outcome = Outcome::OutOfTokens}}});
  return {group};
}

TEST(Room, IsReportedMissingIfAPromptLeavesNone) {
  std::vector<std::string> warnings;
  const auto before = set_log_sink([&](LogLevel, const std::string& message) { warnings.push_back(message); });
  EXPECT_TRUE(check_room("training step 2", groups_with(0, 4), 256).ok());
  EXPECT_TRUE(check_room("training step 2", groups_with(3, 1), 256).ok());
  const Status refused = check_room("training step 2", groups_with(4, 0), 256);
  set_log_sink(before);
  const std::string why =
      " of 4 trajectories have no response: their prompts are not shorter than rollout.max_context_tokens, 256";
  EXPECT_THAT(warnings, ::testing::ElementsAre("training step 2: 3" + why));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "4" + why);
}

}  // namespace
}  // namespace carnot
