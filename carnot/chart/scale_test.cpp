#include "carnot/chart/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace carnot {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

TEST(Ticks, AreOneTwoOrFiveTimesAPowerOfTenApart) {
  EXPECT_THAT(nice_ticks(0, 130, 6), ElementsAre(0, 20, 40, 60, 80, 100, 120));
  EXPECT_THAT(nice_ticks(0, 100, 6), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(nice_ticks(0.18, 0.67, 6), Pointwise(DoubleNear(1e-12), {0.2, 0.3, 0.4, 0.5, 0.6}));
  EXPECT_THAT(nice_ticks(-3, 1, 4), ElementsAre(-3, -2, -1, 0, 1));
}

TEST(Ticks, StandOnEndsThatRoundingHasMoved) {
  EXPECT_THAT(nice_ticks(0.1 + 0.2, 0.6, 3), Pointwise(DoubleNear(1e-12), {0.3, 0.4, 0.5, 0.6}));  // 0.1 + 0.2 > 0.3
}

TEST(Ticks, KeepTheirNumberForRangesOfEverySize) {
  for (int exponent = -200; exponent <= 200; exponent += 7) {
    const double width = 1.37 * std::pow(10, exponent);
    const auto ticks = nice_ticks(-0.3 * width, 0.7 * width, 6);
    EXPECT_GE(ticks.size(), 4u) << exponent;
    EXPECT_LE(ticks.size(), 10u) << exponent;
  }
}

TEST(TickLabels, HaveTheDecimalsThatTellThemApart) {
  EXPECT_THAT(tick_labels(std::vector{0.0, 0.2, 0.4}, false), ElementsAre("0.0", "0.2", "0.4"));
  EXPECT_THAT(tick_labels(std::vector{0.0, 0.2, 0.4}, true), ElementsAre("0 %", "20 %", "40 %"));
  EXPECT_THAT(tick_labels(std::vector{-0.02, -0.0, 0.02}, false), ElementsAre("-0.02", "0.00", "0.02"));
  EXPECT_THAT(tick_labels(std::vector{0.0, 2e7}, false), ElementsAre("0", "2e+07"));
}

TEST(NumberText, KeepsFourSignificantDigits) {
  EXPECT_EQ(number_text(0.123456), "0.1235");
  EXPECT_EQ(number_text(71.5), "71.5");
  EXPECT_EQ(number_text(1234567.8), "1234568");
  EXPECT_EQ(number_text(-2), "-2");
  EXPECT_EQ(number_text(0.0000123), "1.23e-05");
  EXPECT_EQ(number_text(kNone), "-");
}

TEST(Scale, MapsTheEndsOfItsTicksToTheEndsOfThePage) {
  const Scale scale({}, Extent{0.18, 0.67}, 100, 600);
  EXPECT_NEAR(scale.low(), 0.1, 1e-12);
  EXPECT_NEAR(scale.high(), 0.7, 1e-12);
  EXPECT_NEAR(scale(scale.low()), 100, 1e-9);
  EXPECT_NEAR(scale(scale.high()), 600, 1e-9);
  EXPECT_NEAR(scale(0.4), 350, 1e-9);
}

TEST(Scale, RunsBackwardsForTheVerticalAxis) {
  const Scale scale({.low = 0, .high = 1}, std::nullopt, 300, 40);
  EXPECT_DOUBLE_EQ(scale(0), 300);
  EXPECT_DOUBLE_EQ(scale(1), 40);
  EXPECT_DOUBLE_EQ(scale(0.5), 170);
}

TEST(Scale, WidensOneValueAndTakesNoDataAsZeroToOne) {
  const Scale one({}, Extent{5, 5}, 0, 100);
  EXPECT_LT(one.low(), 5);
  EXPECT_GT(one.high(), 5);
  const Scale zero({}, Extent{0, 0}, 0, 100);
  EXPECT_LT(zero.low(), zero.high());
  const Scale none({}, std::nullopt, 0, 100);
  EXPECT_DOUBLE_EQ(none.low(), 0);
  EXPECT_DOUBLE_EQ(none.high(), 1);
  const Scale nearly({}, Extent{1, 1 + 1e-15}, 0, 100);
  EXPECT_LT(nearly.ticks().size(), 12u);
  const Scale from_zero({.low = 0}, Extent{0, 0}, 0, 100);
  EXPECT_LT(from_zero.low(), from_zero.high());
}

TEST(Extent, PassesOverWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto extent = extent_of(std::vector{kNone, 2.0, -infinity, 1.0, infinity});
  ASSERT_TRUE(extent.has_value());
  EXPECT_EQ(extent->low, 1);
  EXPECT_EQ(extent->high, 2);
  EXPECT_FALSE(extent_of(std::vector{kNone, infinity}).has_value());
}

}  // namespace
}  // namespace carnot
