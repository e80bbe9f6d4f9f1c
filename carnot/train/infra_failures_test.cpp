#include "carnot/train/infra_failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(InfraFailures, MayReachTheLimitAndNotPassIt) {
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

}  // namespace
}  // namespace carnot
