// Trajectories as minibatches (train/packing.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "carnot/core/train/packing.h"
#include "testing/random_step.h"

namespace carnot {
namespace {

using testing::random_step;
using testing::RandomStep;

TEST(Minibatches, HoldEveryTrajectoryThatCountsOnceAndNeverSplitAUnit) {
  RandomStream random(9);
  for (int trial = 0; trial < 30; ++trial) {
    const RandomStep step = random_step(random);
    for (const MinibatchUnit unit : {MinibatchUnit::Group, MinibatchUnit::Trajectory}) {
      const auto parts = split_minibatches(step.all, {.count = 3, .unit = unit, .seed = 5});
      std::multiset<int> held;
      std::map<int, std::set<std::size_t>> parts_of_group;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        EXPECT_FALSE(parts[p].empty());
        for (int i : parts[p]) {
          held.insert(i);
          parts_of_group[step.all[i].group_index].insert(p);
        }
      }
      std::multiset<int> expected;
      for (std::size_t i = 0; i < step.all.size(); ++i)
        if (step.all[i].leaf().is_included()) expected.insert(static_cast<int>(i));
      EXPECT_EQ(held, expected);
      if (unit == MinibatchUnit::Group) {
        for (const auto& [group, in] : parts_of_group) EXPECT_EQ(in.size(), 1u) << group;
      }
    }
  }
}

TEST(Minibatches, DependOnTheirSeedAndNothingElse) {
  RandomStream random(10);
  const RandomStep step = random_step(random);
  const MinibatchOptions options{.count = 2, .unit = MinibatchUnit::Trajectory, .seed = 1};
  EXPECT_EQ(split_minibatches(step.all, options), split_minibatches(step.all, options));
  MinibatchOptions other = options;
  std::set<std::vector<std::vector<int>>> seen;
  for (other.seed = 1; other.seed < 10; ++other.seed) seen.insert(split_minibatches(step.all, other));
  EXPECT_GT(seen.size(), 1u);
}

TEST(Minibatches, WithoutShufflingKeepTheOrder) {
  RandomStream random(11);
  const RandomStep step = random_step(random);
  const auto parts = split_minibatches(step.all, {.count = 3, .unit = MinibatchUnit::Trajectory, .shuffle = false});
  std::vector<int> joined;
  for (const auto& part : parts) joined.insert(joined.end(), part.begin(), part.end());
  EXPECT_TRUE(std::is_sorted(joined.begin(), joined.end()));
}

}  // namespace
}  // namespace carnot
