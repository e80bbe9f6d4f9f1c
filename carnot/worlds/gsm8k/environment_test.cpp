#include "carnot/worlds/gsm8k/environment.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "carnot/worlds/reward/maths_answer.h"
#include "testing/field_settings.h"
#include "testing/missing.h"
#include "testing/paths.h"

namespace carnot {
namespace {

const std::string kTaskFolder = source_path("tests/tasks");

using Settings = std::map<std::string, std::string>;

std::unique_ptr<EnvironmentFactory> factory_with(const Settings& settings) {
  auto factory = make_gsm8k();
  testing::FieldSettings fields(settings);
  factory->fields(fields);
  EXPECT_TRUE(fields.unused().empty());
  return factory;
}

Reply answered(const Settings& settings, std::int64_t index, std::string_view response) {
  const auto factory = factory_with(settings);
  EXPECT_TRUE(factory->prepare(0).ok());
  const auto environment = factory->make(Split::Validation, index);
  environment->open();
  return environment->step(response);
}

TEST(Gsm8k, AsksAsEachStyleDoes) {
  const std::map<std::string, std::string> suffixes = {
      {"verl", " Let's think step by step and output the final answer after \"####\"."},
      {"areal", "\nPlease put your final answer within \\boxed{}."},
      {"math", " Let's think step by step and output the final answer within \\boxed{}."}};
  for (const auto& [style, suffix] : suffixes) {
    const auto factory = factory_with({{"task_source", kTaskFolder}, {"style", style}});
    ASSERT_TRUE(factory->prepare(0).ok());
    const Opening opening = factory->make(Split::Validation, 0)->open();
    EXPECT_EQ(opening.user, "Tom reads 15 pages a day. How many pages does he read in 6 days?" + suffix);
    EXPECT_EQ(opening.system, "");
  }
}

TEST(Gsm8k, ScoresVerlsWay) {
  const Settings strict{{"task_source", kTaskFolder}, {"format_score", "0.1"}};
  EXPECT_EQ(answered(strict, 2, "so\n#### 1,234").reward, 1);
  EXPECT_TRUE(answered(strict, 2, "so\n#### 1,234").success);
  EXPECT_EQ(answered(strict, 2, "#### 1234.0").reward, 0.1) << "numbers are compared as text";
  EXPECT_EQ(answered(strict, 2, "It is 1234").reward, 0);
  EXPECT_FALSE(answered(strict, 2, "It is 1234").valid_action);
  const Settings flexible{{"task_source", kTaskFolder}, {"flexible", "true"}};
  EXPECT_EQ(answered(flexible, 2, "It is 1,234.").reward, 1);
  EXPECT_EQ(answered(flexible, 2, "1234, no, 7").reward, 0);
}

TEST(Gsm8k, ScoresMathematicsWithScaleAndBias) {
  const Settings areal{
      {"task_source", kTaskFolder}, {"style", "areal"}, {"reward_scale", "10"}, {"reward_bias", "-0.5"}};
  EXPECT_EQ(answered(areal, 0, "\\boxed{\\frac{180}{2}}").reward, 5);
  EXPECT_EQ(answered(areal, 0, "He reads 90 pages.").reward, 5);
  EXPECT_EQ(answered(areal, 0, "\\boxed{91}, not 90").reward, -5);
  EXPECT_EQ(answered(areal, 0, "").reward, -5);
  const Settings math{{"task_source", kTaskFolder}, {"style", "math"}};
  EXPECT_EQ(answered(math, 0, "\\boxed{90.0 pages}").reward, 1);
  EXPECT_EQ(answered(math, 0, "\\boxed{\\frac{180}{2}}").reward, 0);
  EXPECT_EQ(answered(math, 0, "He reads 90 pages.").reward, 0);
}

TEST(Gsm8k, GivesEqualAnswersEqualTextsForVotes) {
  const Settings areal{{"task_source", kTaskFolder}, {"style", "areal"}};
  EXPECT_EQ(answered(areal, 0, "\\boxed{5/2}").answer, "2.5");
  EXPECT_EQ(answered(areal, 0, "It is 2.50.").answer, "2.5");
  EXPECT_EQ(answered(areal, 0, "I do not know.").answer, std::nullopt);
  EXPECT_EQ(answered(areal, 0, "\\boxed{}").measures.at("answered"), 0);
  EXPECT_EQ(answered({{"task_source", kTaskFolder}}, 0, "#### 1,250").answer, "1250");
}

TEST(Gsm8k, TakesPromptAndAnswerOfVerlsRows) {
  const auto folder = std::filesystem::temp_directory_path() / "carnot_gsm8k_test";
  std::filesystem::create_directories(folder);
  const std::string path = folder / "rows.jsonl";
  std::ofstream(path)
      << "{\"data_source\": \"mine\", \"prompt\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": "
         "\"user\", \"content\": \"2+2?\"}], \"reward_model\": {\"ground_truth\": \"4\"}}\n";
  const auto factory = factory_with({{"train_file", path}, {"test_file", path}});
  ASSERT_TRUE(factory->prepare(0).ok());
  const auto environment = factory->make(Split::Validation, 17);
  const Opening opening = environment->open();
  EXPECT_EQ(opening.system, "Be brief.");
  EXPECT_EQ(opening.user, "2+2?") << "the row's prompt is whole";
  EXPECT_EQ(environment->info().at("data_source"), "mine");
  const auto agent = factory->script(*environment, 1, RandomStream(0));
  EXPECT_EQ(agent->respond("").text, "#### 4") << "without a solution, its end";
  EXPECT_TRUE(environment->step("#### 4").success);
  std::filesystem::remove_all(folder);
}

TEST(Gsm8k, SaysWhichKeyNamesNoTasks) {
  const auto message = [](const Settings& settings) { return factory_with(settings)->prepare(0).error().message; };
  EXPECT_TRUE(message({}).starts_with("env.train_file: names no file; expected one of JSON lines, or env.task_source"));
  EXPECT_TRUE(message({{"train_file", kTaskFolder + "/train.jsonl"}}).starts_with("env.test_file: names no file"));
  EXPECT_EQ(message({{"task_source", "/nowhere"}}),
            "env.task_source: /nowhere: holds neither train.jsonl nor train.jsonl.xz");
  EXPECT_EQ(message({{"task_source", kTaskFolder}, {"style", "math"}, {"flexible", "true"}}),
            "env.flexible: is of style verl alone; expected false, or env.style: verl");
}

TEST(Gsm8k, ShowsEachRowOnceAnEpochInAnotherOrder) {
  const auto factory = factory_with({{"task_source", kTaskFolder}});
  ASSERT_TRUE(factory->prepare(3).ok());
  std::set<std::vector<std::string>> orders;
  for (int epoch = 0; epoch < 8; ++epoch) {
    std::vector<std::string> order;
    for (int i = 0; i < 5; ++i) order.push_back(factory->make(Split::Train, epoch * 5 + i)->open().user);
    EXPECT_EQ(std::set<std::string>(order.begin(), order.end()).size(), 5u);
    EXPECT_EQ(order.front(), factory->make(Split::Train, epoch * 5)->open().user) << "whatever was asked in between";
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 4u);
}

TEST(Gsm8k, DemonstrationsAreTheSolutionsWithoutCalculatorMarks) {
  const TaskRow row{
      .question = "Q", .ground_truth = "29", .solution = "3 * 12 = <<3*12=36>>36.\nSo <<36-7=29>>29.\n#### 29"};
  EXPECT_EQ(worked_solution(row, MathsStyle::Verl), "3 * 12 = 36.\nSo 29.\n#### 29");
  EXPECT_EQ(worked_solution(row, MathsStyle::Areal), "3 * 12 = 36.\nSo 29.\nThe final answer is $\\boxed{29}$.");
  EXPECT_EQ(without_calculator_marks("a <<b>> c << d"), "a  c << d");
}

class EveryStyle : public ::testing::TestWithParam<const char*> {};

/// `training` and `validation` are the numbers of problems in the folder.
void expect_that_solutions_score_one(const std::string& folder, const std::string& style, int training,
                                     int validation) {
  const auto factory = factory_with({{"task_source", folder}, {"style", style}});
  ASSERT_TRUE(factory->prepare(0).ok());
  for (const auto& [split, rows] : {std::pair{Split::Train, training}, std::pair{Split::Validation, validation}}) {
    std::set<std::string> questions;
    for (int i = 0; i < rows; ++i) {
      const auto environment = factory->make(split, i);
      questions.insert(environment->open().user);
      const auto agent = factory->script(*environment, 1, RandomStream(0));
      const Reply reply = environment->step(agent->respond(""));
      ASSERT_TRUE(reply.success && reply.reward == 1) << environment->info().at("question");
    }
    EXPECT_EQ(questions.size(), static_cast<std::size_t>(rows)) << "every row once";
  }
}

TEST_P(EveryStyle, ScoresEverySolutionWithOne) { expect_that_solutions_score_one(kTaskFolder, GetParam(), 5, 3); }

TEST_P(EveryStyle, ScoresEverySolutionOfGsm8kWithOne) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  expect_that_solutions_score_one(published_path("gsm8k"), GetParam(), 7473, 1319);
}

INSTANTIATE_TEST_SUITE_P(Gsm8k, EveryStyle, ::testing::Values("verl", "areal", "math"),
                         [](const auto& info) { return std::string(info.param); });

void expect_that_raw_solutions_score_one(const std::string& file, std::size_t number) {
  const auto rows = read_task_rows(file);
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  ASSERT_EQ(rows->size(), number);
  for (const TaskRow& row : *rows) {
    EXPECT_EQ(marked_answer(row.solution), row.ground_truth);
    EXPECT_EQ(last_number(row.solution), row.ground_truth);
    const auto answer = boxed_or_last_expression(row.solution);
    EXPECT_TRUE(answer && maths_equal(*answer, row.ground_truth)) << row.solution;
    EXPECT_FALSE(maths_equal("1" + row.ground_truth, row.ground_truth));
    EXPECT_FALSE(maths_equal("-" + row.ground_truth, row.ground_truth) && row.ground_truth != "0");
  }
}

TEST(Gsm8k, RawSolutionsScoreOneAndWrongAnswersZero) {
  expect_that_raw_solutions_score_one(kTaskFolder + "/test.jsonl", 3);
}

TEST(Gsm8k, RawPublishedSolutionsScoreOneAndWrongAnswersZero) {
  CARNOT_NEEDS_PUBLISHED_DATA();
  expect_that_raw_solutions_score_one(published_path("gsm8k/test.jsonl.xz"), 1319);
}

}  // namespace
}  // namespace carnot
