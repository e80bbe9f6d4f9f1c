#include "carnot/studies/correlation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

using Values = std::vector<double>;

TEST(Correlation, PearsonGivesValuesThatCanBeWorkedOutByHand) {
  EXPECT_NEAR(*pearson(Values{1, 2, 3}, Values{2, 4, 6}), 1, 1e-15);
  EXPECT_NEAR(*pearson(Values{1, 2, 3}, Values{5, 3, 1}), -1, 1e-15);
  // Deviations -1.5 -0.5 0.5 1.5 and -0.75 0.25 -0.75 1.25: 2.5 / sqrt(5 * 2.75)
  EXPECT_NEAR(*pearson(Values{1, 2, 3, 4}, Values{0, 1, 0, 2}), 2.5 / std::sqrt(13.75), 1e-15);
}

TEST(Correlation, AConstantSideHasNone) {
  EXPECT_FALSE(pearson(Values{1, 2}, Values{3, 3}).has_value());
  EXPECT_FALSE(spearman(Values{0.1, 0.1, 0.1}, Values{3, 4, 5}).has_value());
  EXPECT_FALSE(pearson(Values{1}, Values{3}).has_value());
}

TEST(Correlation, EqualValuesShareTheMeanOfTheirRanks) {
  EXPECT_EQ(ranks(Values{10, 30, 20, 30, 10}), (Values{1.5, 4.5, 3, 4.5, 1.5}));
  EXPECT_EQ(ranks(Values{}), Values{});
}

/// By counting, value by value.
Values ranks_by_counting(const Values& values) {
  Values out;
  for (const double x : values) {
    double below = 0, equal = 0;
    for (const double other : values) {
      below += other < x ? 1 : 0;
      equal += other == x ? 1 : 0;
    }
    out.push_back(below + (equal + 1) / 2);
  }
  return out;
}

TEST(Correlation, SpearmanEqualsItsDefinitionOnRandomValuesWithTies) {
  RandomStream random(7);
  for (int round = 0; round < 50; ++round) {
    Values x, y;
    const std::size_t size = 2 + random.below(20);
    for (std::size_t i = 0; i < size; ++i) {
      x.push_back(static_cast<double>(random.below(6)));
      y.push_back(x.back() + static_cast<double>(random.below(4)));
    }
    EXPECT_EQ(ranks(x), ranks_by_counting(x));
    const auto expected = pearson(ranks_by_counting(x), ranks_by_counting(y));
    const auto got = spearman(x, y);
    ASSERT_EQ(got.has_value(), expected.has_value());
    if (got) {
      EXPECT_NEAR(*got, *expected, 1e-14);
    }
  }
}

TEST(Correlation, SpearmanIgnoresMonotoneMaps) {
  const Values x{0.3, 2, -1, 5, 4};
  Values y;
  for (const double v : x) y.push_back(std::exp(v));
  EXPECT_NEAR(*spearman(x, y), 1, 1e-15);
}

TEST(Correlation, TheIntervalIsFishers) {
  const Interval interval = correlation_interval(0.5, 103);
  EXPECT_NEAR(interval.low, std::tanh(std::atanh(0.5) - 0.1959964), 1e-12);
  EXPECT_NEAR(interval.high, std::tanh(std::atanh(0.5) + 0.1959964), 1e-12);
  EXPECT_EQ(correlation_interval(0.9, 3).low, -1);
  EXPECT_EQ(correlation_text(0.5, 103), "+0.500 [+0.34, +0.63], n = 103");
}

}  // namespace
}  // namespace carnot
