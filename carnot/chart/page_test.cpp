#include "carnot/chart/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/chart/plot.h"
#include "testing/well_formed.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Page, HoldsEverythingAndLoadsNothing) {
  Page page("A < B");
  page.paragraph("x & y")
      .heading("Table")
      .table({.columns = {"method", "after"}, .rows = {{"grpo <script>", "64.8 %"}}})
      .heading("Curves", 3)
      .figure(svg(Plot{.title = "t", .series = {{.x = {0, 1}, .y = {0, 1}}}}), "Mean & band")
      .gallery({svg(Plot{}), svg(Plot{})})
      .list({"<b>one</b>"})
      .preformatted("a\n  <b>");
  const std::string html = page.html();
  EXPECT_EQ(testing::problem_with_markup(html), "");
  EXPECT_THAT(html, HasSubstr("<h1>A &lt; B</h1>"));
  EXPECT_THAT(html, HasSubstr("<td>grpo &lt;script&gt;</td>"));
  EXPECT_THAT(html, HasSubstr("<polyline"));
  for (const char* forbidden : {"<script", "src=", "href=", "@import", "url("})
    EXPECT_THAT(html, Not(HasSubstr(forbidden)));
}

TEST(Table, InMarkdownIsAlignedAndKeepsItsColumns) {
  EXPECT_EQ(markdown({.columns = {"method", "±"}, .rows = {{"a|b", "1.5"}, {"größer", "2"}}}),
            "| method | ±   |\n"
            "|--------|----:|\n"
            "| a\\|b   | 1.5 |\n"
            "| größer | 2   |\n");
}

}  // namespace
}  // namespace carnot
