#include "carnot/core/base/random.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace carnot {
namespace {

TEST(KeyedDraws, DependOnEveryPartOfTheKey) {
  const DrawKey base{.seed = 1, .step = 2, .group = 3, .sibling = 4, .turn = 5, .position = 6};
  std::set<std::uint64_t> seen{random_bits(base)};
  for (std::uint64_t DrawKey::* part :
       {&DrawKey::seed, &DrawKey::step, &DrawKey::group, &DrawKey::sibling, &DrawKey::turn, &DrawKey::position}) {
    DrawKey other = base;
    other.*part += 1;
    EXPECT_TRUE(seen.insert(random_bits(other)).second);
  }
}

TEST(KeyedDraws, AreUniform) {
  std::vector<int> bins(16);
  for (std::uint64_t i = 0; i < 160000; ++i) ++bins[uniform({.seed = 9, .position = i}) * 16];
  double chi_squared = 0;
  for (int n : bins) chi_squared += (n - 10000.0) * (n - 10000.0) / 10000.0;
  EXPECT_LT(chi_squared, 37.7);  // 99.9 % quantile for 15 degrees of freedom
}

TEST(RandomStream, ContinuesFromItsCount) {
  RandomStream straight(5);
  for (int i = 0; i < 10; ++i) straight.bits();
  RandomStream resumed(straight.seed(), straight.count());
  EXPECT_EQ(straight.bits(), resumed.bits());
}

TEST(RandomStream, BelowCoversItsRangeAndNothingElse) {
  RandomStream stream(3);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 500; ++i) seen.insert(stream.below(7));
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(*seen.rbegin(), 6u);
}

TEST(RandomStream, WeightsAreProbabilities) {
  RandomStream stream(4);
  const std::vector<double> weights{1, 0, 3};
  std::vector<int> counts(3);
  for (int i = 0; i < 40000; ++i) ++counts[stream.weighted(weights)];
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0] / 40000.0, 0.25, 0.01);
}

}  // namespace
}  // namespace carnot
