#include "carnot/view/chart/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "carnot/core/base/json.h"
#include "carnot/view/chart/json.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Two methods, two steps; one number is missing.
Table curves() {
  Table table{.name = "by step", .columns = {"method", "step", "mean", "low", "high"}};
  table.add("grpo", 1, 0.25, 0.0, 0.5);
  table.add("grpo", 2, 0.5, 0.25, 0.75);
  table.add("</script><!-- <script>", 1, std::numeric_limits<double>::quiet_NaN(), 0, 1);
  return table;
}

Figure success() {
  return {.title = "Success",
          .table = "by step",
          .x = "step",
          .y = {"mean"},
          .series = {"method"},
          .low = "low",
          .high = "high",
          .x_axis = {.label = "training step"},
          .y_axis = {.label = "success", .low = 0, .high = 1, .percent = true},
          .base = "grpo"};
}

TEST(Figures, ReadBackFromJsonAsTheyWere) {
  OrderedJson written;
  add_tables_and_figures(written, std::vector{curves()}, std::vector{success()});
  const OrderedJson json = OrderedJson::parse(json_text(written));
  const OrderedJson& figure = json.at("figures").at(0);
  EXPECT_EQ(figure.at("draw"), "lines");
  EXPECT_EQ(figure.at("y_axis"), OrderedJson::parse(R"({"label": "success", "percent": true, "low": 0, "high": 1})"));
  EXPECT_FALSE(figure.contains("spread"));
  const OrderedJson& rows = json.at("tables").at(figure.at("table").get<std::string>());
  EXPECT_EQ(rows.at(1).at(figure.at("x").get<std::string>()), 2);
  EXPECT_EQ(rows.at(1).at(figure.at("high").get<std::string>()), 0.75);
  EXPECT_TRUE(rows.at(2).at(figure.at("y").at(0).get<std::string>()).is_null());
}

TEST(Figures, ThatNameWhatIsMissingThrow) {
  using Change = void (*)(Figure&);
  const Change wrong[] = {[](Figure& f) { f.table = "by turn"; },
                          [](Figure& f) { f.x = "turn"; },
                          [](Figure& f) { f.y = {"mean", "median"}; },
                          [](Figure& f) { f.y.clear(); },
                          [](Figure& f) { f.series = {"seed"}; },
                          [](Figure& f) { f.low = "least"; },
                          [](Figure& f) { f.high.clear(); },
                          [](Figure& f) { f.spread = "deviation"; },
                          [](Figure& f) { f.rows = {{"seed", {1.0}}}; },
                          [](Figure& f) { f.dots = "by seed"; }};
  EXPECT_NO_THROW(check_figures(std::vector{success()}, std::vector{curves()}));
  for (const Change change : wrong) {
    Figure figure = success();
    change(figure);
    EXPECT_ANY_THROW(check_figures(std::vector{figure}, std::vector{curves()}));
  }
}

/// The element `script` that holds the report.
std::string report_in(const std::string& html) {
  const std::string start = "<script type=\"application/json\" id=\"report\">";
  const auto begin = html.find(start) + start.size();
  return html.substr(begin, html.find("</script>", begin) - begin);
}

TEST(Page, HoldsTheReportWhateverItsTextsSay) {
  OrderedJson json{{"title", "<!-- <script> & \"</script>\""}};
  add_tables_and_figures(json, std::vector{curves()}, std::vector{success()});
  const std::string report = report_in(page_html(json_text(json)));
  EXPECT_THAT(report, Not(HasSubstr("<")));
  EXPECT_EQ(OrderedJson::parse(report), json);
}

TEST(Page, HasItsScriptsInsideAndLoadsNothing) {
  const std::string html = page_html("{}");
  EXPECT_THAT(html, HasSubstr("var uPlot="));
  EXPECT_THAT(html, HasSubstr("new uPlot("));
  EXPECT_THAT(html, HasSubstr(".u-legend"));
  for (const char* forbidden : {"src=", "href=", "@import", "url(", "import ", "fetch("})
    EXPECT_THAT(html, Not(HasSubstr(forbidden))) << forbidden;
}

}  // namespace
}  // namespace carnot
