#include "carnot/chart/bar_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "testing/well_formed.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

TEST(BarChart, BarsStandOnZeroAndReachTheirValue) {
  const BarChart chart{.y = {.low = -1, .high = 1}, .categories = {"a", "b"}, .series = {{.values = {1, -0.5}}}};
  const std::string text = svg(chart);
  // 360 pixels high: the plot from 38 to 332, zero at 185.
  EXPECT_THAT(text, HasSubstr("y=\"38\""));
  EXPECT_THAT(text, HasSubstr("height=\"147\""));
  EXPECT_THAT(text, HasSubstr("y=\"185\""));
  EXPECT_THAT(text, HasSubstr("height=\"73.5\""));
  EXPECT_EQ(testing::problem_with_markup(text), "");
}

TEST(BarChart, NothingIsDrawnForAMissingValue) {
  const BarChart chart{.categories = {"a", "b"},
                       .series = {{.name = "s", .values = {1, kNone}, .low = {0.5, kNone}, .high = {1.5, kNone}}}};
  const std::string text = svg(chart);
  EXPECT_THAT(text, HasSubstr("a, s: 1"));
  EXPECT_THAT(text, Not(HasSubstr("b, s")));
  EXPECT_EQ(testing::problem_with_markup(text), "");
}

TEST(BarChart, TurnsNamesThatWouldRunIntoEachOther) {
  const BarChart wide{.categories = {"a", "b"}, .series = {{.values = {1, 2}}}};
  EXPECT_THAT(svg(wide), Not(HasSubstr("rotate(-40")));
  BarChart tight;
  for (int i = 0; i < 17; ++i) tight.categories.push_back("grpo + something " + std::to_string(i));
  tight.series = {{.values = std::vector<double>(17, 0.5)}};
  EXPECT_THAT(svg(tight), HasSubstr("rotate(-40"));
}

TEST(BarChart, SaysWhereThereIsNothingToShow) {
  EXPECT_THAT(svg(BarChart{}), HasSubstr("no data"));
  EXPECT_THAT(svg(BarChart{.categories = {"a"}, .series = {{.values = {kNone}}}}), HasSubstr("no data"));
}

}  // namespace
}  // namespace carnot
