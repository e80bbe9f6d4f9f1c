#include "carnot/branch/branch.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

TEST(Independent, StartsEveryTrajectoryFromThePrompt) {
  const auto policy = independent();
  EXPECT_EQ(policy->initial(8), 8);
  EXPECT_FALSE(policy->ever_branches());
  EXPECT_FALSE(policy->branch_here({.turn_entropy = 9, .trajectories = 1, .budget = 8, .uniform = 0}));
}

}  // namespace
}  // namespace carnot
