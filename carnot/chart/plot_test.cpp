#include "carnot/chart/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "testing/well_formed.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Plot, PutsTheEndsOfTheDataOnTheEndsOfTheAxes) {
  const Plot plot{.title = "t",
                  .x = {.low = 0, .high = 10},
                  .y = {.low = 0, .high = 1},
                  .series = {{.x = {0, 5, 10}, .y = {0, 0.5, 1}}},
                  .size = {.width = 500, .height = 300}};
  const std::string text = svg(plot);
  // The plot reaches from its left margin to 20 pixels before the right edge, from 38 to 46 pixels before the bottom.
  EXPECT_THAT(text, HasSubstr(",254 "));
  EXPECT_THAT(text, HasSubstr(" 480,38\""));
  EXPECT_THAT(text, HasSubstr(",146 "));
  EXPECT_EQ(testing::problem_with_markup(text), "");
}

TEST(Plot, ALineHasAGapWhereAValueIsMissing) {
  Plot plot{.series = {{.x = {0, 1, 2, 3, 4, 5}, .y = {1, 2, kNone, 3, 4, kInfinity}}}};
  EXPECT_EQ(count(svg(plot), "<polyline"), 2u);
  plot.series[0].y = {1, kNone, 2, kNone, kNone, 3};
  EXPECT_EQ(count(svg(plot), "<polyline"), 0u);
  EXPECT_EQ(count(svg(plot), "<circle"), 3u) << "values without a neighbour are dots";
}

TEST(Plot, SaysWhereThereIsNothingToShow) {
  for (const Plot& plot : {Plot{}, Plot{.series = {{.name = "empty"}}}, Plot{.series = {{.x = {1}, .y = {kNone}}}}}) {
    EXPECT_THAT(svg(plot), HasSubstr("no data"));
    EXPECT_EQ(testing::problem_with_markup(svg(plot)), "");
  }
  const std::string one = svg({.series = {{.x = {3}, .y = {0.5}}}});
  EXPECT_THAT(one, Not(HasSubstr("no data")));
  EXPECT_THAT(one, HasSubstr("<circle"));
}

TEST(Plot, TheBandIsOnePolygonForEachPieceWithoutGaps) {
  Plot plot{.series = {{.x = {0, 1, 2}, .y = {1, 2, 3}, .low = {0, 1, 2}, .high = {2, 3, 4}}}};
  EXPECT_EQ(count(svg(plot), "<polygon"), 1u);
  plot.series[0] = {.x = {0, 1, 2, 3, 4}, .y = {1, 2, 3, 4, 5}, .low = {0, 1, kNone, 3, 4}, .high = {2, 3, 4, 5, 6}};
  EXPECT_EQ(count(svg(plot), "<polygon"), 2u);
}

TEST(Plot, HasALegendForSeriesWithNamesAlone) {
  const Series unnamed{.x = {0, 1}, .y = {0, 1}};
  Series named = unnamed;
  named.name = "grpo + aem <x>";
  EXPECT_THAT(svg({.series = {named, unnamed}}), Not(HasSubstr("grpo")));
  EXPECT_THAT(svg({.series = {named, named, unnamed}}), HasSubstr("grpo + aem &lt;x&gt;"));
}

TEST(Plot, CutsOffWhatLiesOutsideItsAxes) {
  const std::string text = svg({.x = {.low = 0, .high = 1},
                                .y = {.low = 0, .high = 1},
                                .series = {{.x = {0.5, 2, 0.5}, .y = {0.5, 0.5, 7}, .draw = Draw::Points}}});
  EXPECT_EQ(count(text, "<circle"), 1u);
}

TEST(Histogram, GivesSharesOfAllFiniteValues) {
  const Series series = histogram("h", std::vector{0.0, 0.1, 0.5, 1.0, 3.0, kNone}, 0, 1, 2);
  EXPECT_THAT(series.x, ElementsAre(0, 0.5, 1));
  EXPECT_THAT(series.y, ElementsAre(0.4, 0.4));  // the last bin holds its upper end; 3 is outside of both
  EXPECT_EQ(testing::problem_with_markup(svg({.series = {series}})), "");
  EXPECT_THAT(histogram("none", {}, 0, 1, 2).y, ElementsAre(0, 0));
}

TEST(Smoothed, AveragesNeighboursAndPassesOverMissingValues) {
  EXPECT_THAT(smoothed(std::vector{1.0, 2.0, 6.0, 0.0}, 3), ElementsAre(1.5, 3, 8.0 / 3, 3));
  EXPECT_THAT(smoothed(std::vector{1.0, kNone, 3.0}, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(smoothed(std::vector{1.0, 2.0}, 1), ElementsAre(1, 2));
  EXPECT_TRUE(std::isnan(smoothed(std::vector{kNone}, 3)[0]));
}

TEST(Plot, IsTheSameTextEveryTime) {
  const Plot plot{.title = "t",
                  .series = {{.name = "a", .x = {0, 1}, .y = {0.1, 0.7}}, {.name = "b", .x = {0, 1}, .y = {0.3, 0.2}}}};
  EXPECT_EQ(svg(plot), svg(plot));
}

}  // namespace
}  // namespace carnot
