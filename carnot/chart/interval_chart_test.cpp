#include "carnot/chart/interval_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "testing/well_formed.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(IntervalChart, DrawsARowForEachNameAndTheMark) {
  const IntervalChart chart{
      .title = "differences",
      .mark = 0,
      .rows = {{.name = "grpo & aem", .value = 0.1, .interval = Extent{-0.1, 0.3}, .single = {0.0, 0.2}},
               {.name = "rloo", .value = std::numeric_limits<double>::quiet_NaN()}}};
  const std::string text = svg(chart);
  EXPECT_EQ(testing::problem_with_markup(text), "");
  EXPECT_THAT(text, HasSubstr("grpo &amp; aem: 0.1"));
  EXPECT_THAT(text, HasSubstr(">rloo<"));
  EXPECT_THAT(text, HasSubstr("stroke-dasharray=\"4 3\""));
  EXPECT_THAT(text, Not(HasSubstr("no data")));
}

TEST(IntervalChart, GrowsWithItsRowsAndMayBeEmpty) {
  EXPECT_THAT(svg(IntervalChart{}), HasSubstr("no data"));
  IntervalChart chart;
  for (int i = 0; i < 17; ++i) chart.rows.push_back({.name = std::to_string(i), .value = 1.0 * i});
  EXPECT_THAT(svg(chart), HasSubstr("height=\"496\""));
}

}  // namespace
}  // namespace carnot
