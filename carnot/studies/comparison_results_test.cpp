#include "carnot/studies/comparison_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/json.h"
#include "carnot/studies/comparison_report.h"
#include "carnot/studies/mean_curve.h"

namespace carnot {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

ContestRun finished(std::int64_t seed, double before, double after) {
  ContestRun run{.seed = seed,
                 .folder = "seed_" + std::to_string(seed) + "/x",
                 .finished = true,
                 .before = before,
                 .after = after};
  run.curves["env/search_qa/success"] = {{1, before}, {2, after}};
  return run;
}

/// Three seeds of GRPO; of the other method two, and one that failed.
Comparison example() {
  Comparison comparison{.recipe = "r.yaml",
                        .environment = "search_qa",
                        .training_steps = 2,
                        .validation_tasks = 8,
                        .evaluation_samples = 1};
  comparison.contestants = {
      {.name = "grpo", .runs = {finished(0, 0.1, 0.5), finished(1, 0.2, 0.6), finished(2, 0.3, 0.7)}},
      {.name = "grpo + <aem>",
       .runs = {
           finished(0, 0.1, 0.6), finished(1, 0.2, 0.6), {.seed = 2, .folder = "seed_2/x", .problem = "no | memory"}}}};
  comparison.left_out = {{"igpo", "no answer"}};
  return comparison;
}

std::vector<std::string> cells(const Table& table, std::size_t row) {
  std::vector<std::string> texts;
  for (const Cell& cell : table.rows[row]) texts.push_back(std::get<std::string>(cell));
  return texts;
}

/// What the page's script reads.
Json report_of_page(const Comparison& comparison) {
  const std::string html = comparison_html(comparison), start = "id=\"report\">";
  const auto begin = html.find(start) + start.size();
  return Json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

TEST(MeanCurve, TakesStepsThatAllRunsHave) {
  const MeanCurve curve = mean_curve({{{1, 0.0}, {2, 1.0}, {3, 2.0}}, {{1, 1.0}, {2, 2.0}}, {{1, 2.0}, {2, 3.0}}}, 1);
  EXPECT_THAT(curve.step, ElementsAre(1, 2));
  EXPECT_THAT(curve.mean, ElementsAre(1, 2));
  const double half = 4.303 / std::sqrt(3);  // t(2), deviation 1
  EXPECT_THAT(curve.high, ElementsAre(DoubleEq(1 + half), DoubleEq(2 + half)));
  EXPECT_TRUE(mean_curve({}, 3).step.empty());
  EXPECT_TRUE(mean_curve({{{1, 0.5}}, {{1, 0.75}}}, 3).low.empty()) << "two runs have no band";
}

TEST(ComparisonTable, GivesMeansIntervalsAndPairedDifferences) {
  const Table table = comparison_table(example());
  ASSERT_EQ(table.rows.size(), 2u);
  // 0.5, 0.6, 0.7: t(2) 0.1 / sqrt(3) = 0.2484.
  const auto base = cells(table, 0), other = cells(table, 1);
  EXPECT_THAT(std::vector(base.begin(), base.begin() + 5),
              ElementsAre("grpo", "3", "20.0 % ± 24.8", "60.0 % ± 24.8", "(base)"));
  // Pairs of seeds 0 and 1: 0.1 and 0: mean 0.05. Two seeds tell no interval.
  EXPECT_THAT(std::vector(other.begin() + 1, other.begin() + 6),
              ElementsAre("2", "15.0 %", "60.0 %", "+5.0", "too few seeds"));
}

TEST(ComparisonTable, HasNoVerdictOnEqualDifferences) {
  Comparison comparison = example();
  comparison.contestants[1].runs = {finished(0, 0.1, 0.625), finished(1, 0.2, 0.725), finished(2, 0.3, 0.825)};
  for (ContestRun& run : comparison.contestants[0].runs) run.after = 0.5;
  for (ContestRun& run : comparison.contestants[1].runs) run.after = 0.625;
  EXPECT_EQ(cells(comparison_table(comparison), 1)[5], "no spread");
  for (ContestRun& run : comparison.contestants[1].runs) run.after = 0.5;
  EXPECT_EQ(cells(comparison_table(comparison), 1)[5], "contains 0");
}

TEST(ComparisonPage, DrawsMeansDifferencesAndSeedsWithinWhatTheyCanBe) {
  // As wide as three seeds can be: Student's interval reaches from -110 to 177 %.
  Comparison comparison = example();
  comparison.contestants[1].runs = {finished(0, 0.0, 0.0), finished(1, 0.0, 0.0), finished(2, 1.0, 1.0)};
  const Json page = report_of_page(comparison);
  std::vector<std::string> titles;
  for (const Json& figure : page.at("figures")) titles.push_back(figure.at("title"));
  EXPECT_THAT(titles, ElementsAre("Success after training, difference to grpo", "Success on training tasks"));
  const Json &differences = page.at("figures").at(0), &success = page.at("figures").at(1);
  EXPECT_EQ(differences.at("y_axis").at("low"), -100);
  EXPECT_EQ(differences.at("y_axis").at("high"), 100);
  EXPECT_EQ(success.at("y_axis").at("low"), 0);
  EXPECT_EQ(success.at("y_axis").at("high"), 1);
  EXPECT_EQ(success.at("base"), "grpo");
  const Json& single = page.at("tables").at(differences.at("dots").get<std::string>());
  const double expected[] = {-50, -60, 30};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(single.at(i).at("difference").get<double>(), expected[i], 1e-12);
  const Json& mean = page.at("tables").at(differences.at("table").get<std::string>()).at(0);
  EXPECT_NEAR(mean.at("difference").get<double>(), -80.0 / 3, 1e-12);
  EXPECT_LT(mean.at("low").get<double>(), -100) << "the table keeps what the axis cuts";
}

TEST(ComparisonReport, SetsThePeakBesideTheFinalSuccess) {
  Comparison comparison = example();
  EXPECT_THAT(comparison_markdown(comparison), Not(HasSubstr("Peak")));
  for (ContestRun& run : comparison.contestants[0].runs) {
    run.peak = run.after + 0.1;
    run.peak_step = 1 + static_cast<double>(run.seed);
  }
  const Table table = peak_table(comparison);
  EXPECT_THAT(cells(table, 0), ElementsAre("grpo", "3", "70.0 % ± 24.8", "60.0 % ± 24.8", HasSubstr("-10.0 ["), "2.0"));
  EXPECT_THAT(comparison_markdown(comparison), HasSubstr("## Peak against final success"));
  EXPECT_EQ(report_of_page(comparison).at("tables").at("Peak against final success").size(), 2u);
  EXPECT_THAT(comparison_json(comparison), HasSubstr("\"peak_step\": 1.0"));
}

TEST(ComparisonReport, ListsWhatIsMissing) {
  const Comparison comparison = example();
  const std::string text = comparison_markdown(comparison);
  EXPECT_THAT(text, HasSubstr("5 of 6 runs finished"));
  EXPECT_THAT(text, HasSubstr("* seed_2/x: no | memory"));
  EXPECT_THAT(text, HasSubstr("* igpo: no answer"));
  const Json page = report_of_page(comparison);
  EXPECT_EQ(page.at("findings").at(1).at("method"), "grpo + <aem>");
  EXPECT_EQ(page.at("sections").at(1).at("lines").at(0), "seed_2/x: no | memory");
}

TEST(ComparisonReport, OfRunsThatHaveNotBegunIsEmptyAndNotWrong) {
  Comparison comparison = example();
  for (ContestantResult& contestant : comparison.contestants)
    for (ContestRun& run : contestant.runs) run = {.seed = run.seed, .folder = run.folder};
  EXPECT_EQ(cells(comparison_table(comparison), 1)[4], "-");
  EXPECT_THAT(comparison_markdown(comparison), HasSubstr("0 of 6 runs finished"));
  EXPECT_THAT(comparison_markdown(comparison), HasSubstr("* grpo: seed 0, 1, 2\n"));
  EXPECT_EQ(report_of_page(comparison).at("figures").size(), 0u);
}

TEST(ComparisonJson, SaysNothingOfSeconds) {
  Comparison comparison = example();
  const std::string before = comparison_json(comparison);
  comparison.contestants[0].runs[0].seconds = 17;
  EXPECT_EQ(comparison_json(comparison), before);
  EXPECT_THAT(before, HasSubstr("\"difference\""));
  EXPECT_THAT(before, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace carnot
