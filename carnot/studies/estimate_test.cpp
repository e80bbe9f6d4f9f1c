#include "carnot/studies/estimate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace carnot {
namespace {

TEST(Estimate, OfFiveValuesHasTheIntervalThatAHandComputes) {
  // Mean 3, sample variance 2.5, t(4) = 2.776: half of the width 2.776 sqrt(2.5 / 5).
  const Estimate estimate = estimate_of(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_EQ(estimate.count, 5);
  EXPECT_EQ(estimate.mean, 3);
  ASSERT_TRUE(estimate.interval);
  EXPECT_NEAR(estimate.interval->low, 3 - 2.776 * std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(estimate.interval->high, 3 + 2.776 * std::sqrt(0.5), 1e-12);
  EXPECT_TRUE(estimate.excludes_zero());
}

TEST(Estimate, OfFewerThanThreeSeedsHasNoIntervalAndNoVerdict) {
  const Estimate two = estimate_of(std::vector<double>{0.0, 0.2});  // with one: 0.1 +- 1.27
  EXPECT_EQ(two.mean, 0.1);
  EXPECT_FALSE(two.interval);
  const Estimate equal = paired_difference({{0, 0.6}, {1, 0.7}}, {{0, 0.5}, {1, 0.6}});
  EXPECT_FALSE(equal.excludes_zero());
  const Estimate also_equal = estimate_of(std::vector<double>{0.125, 0.125, 0.125});
  ASSERT_TRUE(also_equal.interval);
  EXPECT_FALSE(also_equal.excludes_zero()) << "three equal values tell nothing of their spread either";
}

TEST(Estimate, OfOneSeedHasNoInterval) {
  const Estimate one = estimate_of(std::vector<double>{0.7});
  EXPECT_EQ(one.mean, 0.7);
  EXPECT_FALSE(one.interval);
  EXPECT_FALSE(one.excludes_zero());
  EXPECT_EQ(estimate_of(BySeed{}).count, 0);
}

TEST(PairedDifference, CancelsWhatSeedsDoToBoth) {
  // Differences 0.1, 0.2, 0.3: mean 0.2, deviation 0.1, t(2) = 4.303.
  const BySeed base{{0, 0.1}, {1, 0.9}, {2, 0.4}}, better{{0, 0.2}, {1, 1.1}, {2, 0.7}};
  const Estimate difference = paired_difference(better, base);
  EXPECT_EQ(difference.count, 3);
  EXPECT_NEAR(difference.mean, 0.2, 1e-15);
  EXPECT_NEAR(difference.interval->high, 0.2 + 4.303 * 0.1 / std::sqrt(3), 1e-12);
  EXPECT_FALSE(difference.excludes_zero()) << "0.2 - 0.248";
  EXPECT_EQ(paired_difference(base, base).mean, 0);
}

TEST(PairedDifference, UsesSeedsThatBothHave) {
  const Estimate difference = paired_difference({{0, 1.0}, {3, 5.0}}, {{0, 0.5}, {1, 9.0}});
  EXPECT_EQ(difference.count, 1);
  EXPECT_EQ(difference.mean, 0.5);
  EXPECT_FALSE(difference.interval);
}

TEST(MeanText, OfEqualValuesHasNoWidthByRounding) {
  EXPECT_EQ(mean_text(std::vector<double>(5, 5.1)), "5.1 ± 0");
  EXPECT_EQ(mean_text(std::vector<double>{1, 2}), "1.5");
}

}  // namespace
}  // namespace carnot
