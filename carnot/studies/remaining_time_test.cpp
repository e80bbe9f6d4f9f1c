#include "carnot/studies/remaining_time.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

TEST(RemainingTime, AddsUpRunsAndWarmStartsByTheirOwnMeans) {
  RemainingTime time;
  EXPECT_EQ(time.estimate(2, 4), std::nullopt);
  time.add_start(20);
  EXPECT_EQ(time.estimate(1, 4), std::nullopt) << "no run was timed";
  time.add_run(50);
  time.add_run(70);
  EXPECT_EQ(time.estimate(1, 4), 20 + 4 * 60);
  EXPECT_EQ(time.estimate(0, 0), 0);
}

TEST(RemainingTime, AWarmStartCountsAsARunUntilOneWasTimed) {
  RemainingTime time;
  time.add_run(60);
  EXPECT_EQ(time.estimate(2, 3), 5 * 60);
}

}  // namespace
}  // namespace carnot
