#include "carnot/study/comparison_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "carnot/study/comparison_report.h"
#include "carnot/study/comparison_text.h"
#include "testing/well_formed.h"

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

TEST(MeanCurve, TakesStepsThatAllRunsHave) {
  const MeanCurve curve =
      mean_curve({{{1, 0.0}, {2, 1.0}, {3, 2.0}}, {{1, 1.0}, {2, 2.0}}, {{1, 2.0}, {2, 3.0}}}, 1);
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
  EXPECT_THAT(std::vector(table.rows[0].begin(), table.rows[0].begin() + 5),
              ElementsAre("grpo", "3", "20.0 % ± 24.8", "60.0 % ± 24.8", "(base)"));
  // Pairs of seeds 0 and 1: 0.1 and 0: mean 0.05. Two seeds tell no interval.
  EXPECT_THAT(std::vector(table.rows[1].begin() + 1, table.rows[1].begin() + 6),
              ElementsAre("2", "15.0 %", "60.0 %", "+5.0", "too few seeds"));
}

TEST(ComparisonTable, HasNoVerdictOnEqualDifferences) {
  Comparison comparison = example();
  comparison.contestants[1].runs = {finished(0, 0.1, 0.625), finished(1, 0.2, 0.725), finished(2, 0.3, 0.825)};
  for (ContestRun& run : comparison.contestants[0].runs) run.after = 0.5;
  for (ContestRun& run : comparison.contestants[1].runs) run.after = 0.625;
  EXPECT_EQ(comparison_table(comparison).rows[1][5], "no spread");
  for (ContestRun& run : comparison.contestants[1].runs) run.after = 0.5;
  EXPECT_EQ(comparison_table(comparison).rows[1][5], "contains 0");
}

TEST(ComparisonPage, KeepsIntervalsToWhatSuccessCanBe) {
  // As wide as three seeds can be: Student's interval reaches from -110 to 177 %.
  Comparison comparison = example();
  comparison.contestants[1].runs = {finished(0, 0.0, 0.0), finished(1, 0.0, 0.0), finished(2, 1.0, 1.0)};
  const std::string page = comparison_html(comparison);
  const std::regex label(">(-?[0-9.]+)( %)?</text>");
  int labels = 0;
  for (auto one = std::sregex_iterator(page.begin(), page.end(), label); one != std::sregex_iterator(); ++one) {
    const double value = std::stod((*one)[1].str());
    EXPECT_LE(std::abs(value), 100);
    if ((*one)[2].matched) {
      EXPECT_GE(value, 0) << "a share below nothing";
    }
    ++labels;
  }
  EXPECT_GT(labels, 10);
}

TEST(ComparisonReport, SetsThePeakBesideTheFinalSuccess) {
  Comparison comparison = example();
  EXPECT_THAT(comparison_markdown(comparison), Not(HasSubstr("Peak")));
  for (ContestRun& run : comparison.contestants[0].runs) {
    run.peak = run.after + 0.1;
    run.peak_step = 1 + static_cast<double>(run.seed);
  }
  const Table table = peak_table(comparison);
  EXPECT_THAT(table.rows[0], ElementsAre("grpo", "3", "70.0 % ± 24.8", "60.0 % ± 24.8", HasSubstr("-10.0 ["), "2.0"));
  EXPECT_THAT(comparison_markdown(comparison), HasSubstr("## Peak against final success"));
  EXPECT_THAT(comparison_html(comparison), HasSubstr("Peak against final success"));
  EXPECT_THAT(comparison_json(comparison), HasSubstr("\"peak_step\": 1.0"));
}

TEST(ComparisonReport, ListsWhatIsMissingAndIsWellFormed) {
  const Comparison comparison = example();
  const std::string text = comparison_markdown(comparison), page = comparison_html(comparison);
  EXPECT_THAT(text, HasSubstr("5 of 6 runs finished"));
  EXPECT_THAT(text, HasSubstr("* seed_2/x: no | memory"));
  EXPECT_THAT(text, HasSubstr("* igpo: no answer"));
  EXPECT_EQ(testing::problem_with_markup(page), "");
  EXPECT_THAT(page, HasSubstr("<polyline"));
  EXPECT_THAT(page, HasSubstr("grpo + &lt;aem&gt;"));
}

TEST(ComparisonReport, OfRunsThatHaveNotBegunIsEmptyAndNotWrong) {
  Comparison comparison = example();
  for (ContestantResult& contestant : comparison.contestants)
    for (ContestRun& run : contestant.runs) run = {.seed = run.seed, .folder = run.folder};
  EXPECT_EQ(comparison_table(comparison).rows[1][4], "-");
  EXPECT_THAT(comparison_markdown(comparison), HasSubstr("0 of 6 runs finished"));
  EXPECT_THAT(comparison_markdown(comparison), HasSubstr("* grpo: seed 0, 1, 2\n"));
  EXPECT_EQ(testing::problem_with_markup(comparison_html(comparison)), "");
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
