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

/// By Fisher's transformation, which is exact for large normal samples.
Interval fisher(double correlation, std::size_t pairs) {
  const double half = 1.959964 / std::sqrt(static_cast<double>(pairs) - 3);
  return {std::tanh(std::atanh(correlation) - half), std::tanh(std::atanh(correlation) + half)};
}

/// Pairs with a true correlation of 0.6.
std::pair<Values, Values> normal_pairs(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed);
  Values x, y;
  for (std::size_t i = 0; i < count; ++i) {
    x.push_back(random.normal());
    y.push_back(0.6 * x.back() + 0.8 * random.normal());
  }
  return {x, y};
}

TEST(Correlation, OfIndependentNormalPairsHasFishersInterval) {
  const auto [x, y] = normal_pairs(40000, 3);
  const Correlation found = resampled_pearson(x, y);
  EXPECT_EQ(found.value, pearson(x, y));
  EXPECT_EQ(found.pairs, 40000u);
  ASSERT_TRUE(found.interval.has_value());
  EXPECT_NEAR(found.interval->low, fisher(*found.value, x.size()).low, 0.002);
  EXPECT_NEAR(found.interval->high, fisher(*found.value, x.size()).high, 0.002);
  EXPECT_EQ(resampled_spearman(x, y).value, spearman(x, y));
}

TEST(Correlation, OfPairsThatComeTenTimesHasTheIntervalOfOneOfEach) {
  const auto [x, y] = normal_pairs(400, 4);
  Values many_x, many_y;
  std::vector<int> clusters;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (int copy = 0; copy < 10; ++copy) {
      many_x.push_back(x[i]);
      many_y.push_back(y[i]);
      clusters.push_back(static_cast<int>(i));
    }
  const Correlation once = resampled_pearson(x, y), tenfold = resampled_pearson(many_x, many_y, clusters);
  EXPECT_NEAR(tenfold.interval->low, once.interval->low, 1e-12);
  EXPECT_NEAR(tenfold.interval->high, once.interval->high, 1e-12);
  const Interval as_independent = *resampled_pearson(many_x, many_y).interval;
  EXPECT_LT(as_independent.high - as_independent.low, 0.5 * (once.interval->high - once.interval->low));
}

TEST(Correlation, ThatOneOutlierMakesHasAWideInterval) {
  auto [x, y] = normal_pairs(40, 5);
  for (double& value : y) value = -value;
  x.push_back(40);
  y.push_back(40);
  const Correlation found = resampled_pearson(x, y);
  EXPECT_GT(*found.value, 0.8);
  EXPECT_GT(fisher(*found.value, x.size()).low, 0.7);
  EXPECT_LT(found.interval->low, 0) << "four resamples of ten are without it";
  EXPECT_LT(*spearman(x, y), 0);
}

TEST(Correlation, OfTooFewClustersHasNoInterval) {
  EXPECT_FALSE(resampled_pearson(Values{1, 2, 3, 5}, Values{1, 2, 4, 3}, std::vector{0, 0, 1, 1}).interval.has_value());
  EXPECT_EQ(correlation_text({.value = 0.5, .interval = Interval{0.34, 0.631}, .pairs = 103}),
            "+0.500 [+0.34, +0.63], n = 103");
  EXPECT_EQ(correlation_text({.value = 0.5, .pairs = 2}), "+0.500, n = 2");
  EXPECT_EQ(correlation_text({.pairs = 1}), "none (constant or too few), n = 1");
}

}  // namespace
}  // namespace carnot
