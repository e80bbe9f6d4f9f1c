#include "carnot/core/base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace carnot {
namespace {

TEST(Statistics, TheTwoStandardDeviationsDifferByBesselsFactor) {
  const std::vector<double> values{1, 0, 0, 1, 0, 0, 0, 0};
  EXPECT_NEAR(std_sample(values), std::sqrt(1.5 / 7), 1e-15);
  EXPECT_NEAR(std_population(values) * std::sqrt(8.0 / 7.0), std_sample(values), 1e-15);
}

TEST(Statistics, EmptyAndSingleValuesHaveNoSpread) {
  EXPECT_EQ(mean({}), 0);
  EXPECT_EQ(std_population({}), 0);
  EXPECT_EQ(std_sample(std::vector<double>{3.0}), 0);
}

TEST(Statistics, EqualityOfRewardsIsExact) {
  EXPECT_TRUE(all_equal(std::vector<double>(8, 0.1)));
  EXPECT_FALSE(all_equal(std::vector<double>{0.1, std::nextafter(0.1, 1.0)}));
}

TEST(WilsonInterval, MatchesPublishedValues) {
  // Newcombe 1998, table I: 81 of 263.
  const Interval interval = wilson_interval(81, 263);
  EXPECT_NEAR(interval.low, 0.2553, 5e-5);
  EXPECT_NEAR(interval.high, 0.3662, 5e-5);
}

TEST(WilsonInterval, WithoutTrialsIsTheWholeRange) {
  EXPECT_EQ(wilson_interval(0, 0).low, 0);
  EXPECT_EQ(wilson_interval(0, 0).high, 1);
}

TEST(MeanInterval, UsesStudentsTForFewValues) {
  const Interval interval = mean_interval(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_NEAR(interval.high - 3, 2.776 * std::sqrt(2.5 / 5), 1e-12);
}

}  // namespace
}  // namespace carnot
