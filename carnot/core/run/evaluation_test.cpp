#include "carnot/core/run/evaluation.h"

#include <gtest/gtest.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <random>

namespace carnot {
namespace {

/// One sample: its answer (empty: none given), whether it is right, whether our infrastructure failed instead.
struct Sample {
  std::string answer{};
  bool right = false;
  bool failed = false;
};

Group group_of(const std::vector<Sample>& samples) {
  Group group;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Tree tree;
    tree.turns.push_back(
        {.tokens = {1, 2}, .sampled_begin = 1, .sampled_end = 2, .reward = samples[i].right ? 1.0 : 0.0});
    Leaf leaf{
        .turn = 0, .sibling = static_cast<int>(i), .score = samples[i].right ? 1.0 : 0.0, .success = samples[i].right};
    if (!samples[i].answer.empty()) leaf.answer = samples[i].answer;
    if (samples[i].failed) leaf.outcome = Outcome::InfraFailed;
    tree.leaves.push_back(leaf);
    group.trees.push_back(std::move(tree));
  }
  return group;
}

const Sample kRight{"18", true}, kWrong{"19"}, kOther{"20"}, kSilent{};

TEST(MajoritySuccess, IsThatOfTheMostFrequentAnswer) {
  EXPECT_EQ(majority_success(group_of({kWrong, kRight, kRight})), true);
  EXPECT_EQ(majority_success(group_of({kRight, kWrong, kWrong})), false);
  EXPECT_EQ(majority_success(group_of({kWrong, kOther, kRight, kRight})), true) << "two of four are the most";
}

TEST(MajoritySuccess, TakesTheFirstOfEquallyFrequentAnswers) {
  EXPECT_EQ(majority_success(group_of({kRight, kWrong})), true);
  EXPECT_EQ(majority_success(group_of({kWrong, kRight})), false);
  EXPECT_EQ(majority_success(group_of({kOther, kRight, kWrong, kWrong, kRight})), true) << "the right one came first";
}

TEST(MajoritySuccess, CountsNeitherSilenceNorFailures) {
  EXPECT_EQ(majority_success(group_of({kSilent, kSilent, kRight})), true);
  EXPECT_EQ(majority_success(group_of({kSilent})), std::nullopt);
  EXPECT_EQ(majority_success(group_of({})), std::nullopt);
  EXPECT_EQ(majority_success(group_of({{"19", false, true}, {"19", false, true}, kRight})), true);
}

TEST(MajoritySuccess, GoesByTheNumberInTheGroupNotByThePlaceInTheTrees) {
  Group group = group_of({kRight, kWrong});
  std::swap(group.trees[0], group.trees[1]);
  EXPECT_EQ(majority_success(group), true);
}

// Four tasks of three samples. By hand: 6 of 11 samples that count are right (one failed); tasks solved by any: all;
// by the majority: the first and the third (a tie, the right answer first); the fourth gives no answer.
std::vector<Group> four_tasks() {
  return {group_of({kRight, kWrong, kRight}), group_of({kWrong, kWrong, kRight}),
          group_of({kRight, kOther, {"19", false, true}}), group_of({{"", true}, {"", true}, kSilent})};
}

TEST(Evaluation, GivesMeanBestAndMajorityOfAHandMadeTable) {
  const Evaluation evaluation = summarize(four_tasks(), "");
  EXPECT_EQ(evaluation.success.trials, 11);
  EXPECT_EQ(evaluation.success.successes, 6);
  EXPECT_EQ(evaluation.infra_failures, 1);
  EXPECT_DOUBLE_EQ(evaluation.best_of_samples, 1);
  ASSERT_TRUE(evaluation.majority.has_value());
  EXPECT_DOUBLE_EQ(*evaluation.majority, 2.0 / 4);

  const auto metrics = evaluation_metrics(evaluation, "gsm8k", 3);
  EXPECT_DOUBLE_EQ(metrics.at("val-core/gsm8k/success/mean@3"), 6.0 / 11);
  EXPECT_DOUBLE_EQ(metrics.at("val-core/gsm8k/success/best@3"), 1);
  EXPECT_DOUBLE_EQ(metrics.at("val-core/gsm8k/success/maj@3"), 0.5);
  EXPECT_EQ(nlohmann::json::parse(evaluation_json(evaluation)).at("majority"), 0.5);
  EXPECT_NE(evaluation_table({{"after", evaluation}}, "").find("solved by the majority    50.0 %"), std::string::npos)
      << evaluation_table({{"after", evaluation}}, "");
}

TEST(Rate, OfOneTrajectoryATaskHasWilsonsInterval) {
  Rate rate;
  for (int task = 0; task < 263; ++task) rate.add_task(task < 81 ? 1 : 0, 1);
  EXPECT_EQ(rate.interval().low, wilson_interval(81, 263).low);
  EXPECT_EQ(rate.interval().high, wilson_interval(81, 263).high);
}

TEST(Rate, OfTasksThatAllEndAlikeKnowsAsMuchAsOneTrajectoryOfEach) {
  Rate rate;
  for (int task = 0; task < 4; ++task) rate.add_task(task == 0 ? 50 : 0, 50);
  EXPECT_EQ(rate.trials, 200);
  EXPECT_EQ(rate.value(), 0.25);
  EXPECT_DOUBLE_EQ(rate.interval().low, wilson_interval(1, 4).low);
  EXPECT_DOUBLE_EQ(rate.interval().high, wilson_interval(1, 4).high);
}

TEST(Rate, OfSamplesThatDependOnNothingKnowsNearlyAsMuchAsTheyAreMany) {
  std::mt19937 draw(5);
  std::bernoulli_distribution success(0.3);
  Rate rate;
  for (int task = 0; task < 4000; ++task) {
    int successes = 0;
    for (int sample = 0; sample < 8; ++sample) successes += success(draw) ? 1 : 0;
    rate.add_task(successes, 8);
  }
  EXPECT_GT(rate.effective_trials(), 0.9 * 32000);
  EXPECT_LE(rate.effective_trials(), 32000);
  EXPECT_EQ(Rate().interval().high, 1);
}

TEST(Evaluation, SaysHowManyTrajectoriesCountAndHowManyFailed) {
  const Evaluation evaluation = summarize(four_tasks(), "");
  const std::string table = evaluation_table({{"after", evaluation}}, "");
  EXPECT_NE(table.find("trajectories that count   11\n"), std::string::npos) << table;
  EXPECT_NE(table.find("infrastructure failures   1\n"), std::string::npos) << table;
  const auto metrics = evaluation_metrics(evaluation, "gsm8k", 3);
  EXPECT_EQ(metrics.at("val-aux/gsm8k/trajectories"), 11);
  EXPECT_EQ(metrics.at("val-aux/gsm8k/infra_failures"), 1);
}

TEST(Evaluation, AreTablesOneBelowTheOtherWhereOneIsTooWide) {
  const Evaluation evaluation = summarize(four_tasks(), "");
  const std::vector<std::pair<std::string, Evaluation>> columns = {{"before", evaluation}, {"after", evaluation}};
  const std::string together = evaluation_table(columns, "", 79);
  EXPECT_EQ(evaluation_table(columns, "", 40),
            evaluation_table({columns[0]}, "") + "\n" + evaluation_table({columns[1]}, ""));
  const auto width = static_cast<int>(together.find('\n', together.find('\n') + 1) - together.find('\n') - 1);
  EXPECT_EQ(evaluation_table(columns, "", width), together);
  EXPECT_NE(evaluation_table(columns, "", width - 1), together);
}

TEST(PassAt, IsTheShareOfDrawsThatHoldASuccess) {
  for (int n = 1; n <= 7; ++n)
    for (int c = 0; c <= n; ++c)
      for (int k = 1; k <= n; ++k) {
        // Every choice of k of n samples, of which the first c succeed.
        int draws = 0, solved = 0;
        for (unsigned chosen = 0; chosen < 1u << n; ++chosen) {
          if (std::popcount(chosen) != k) continue;
          ++draws;
          solved += (chosen & ((1u << c) - 1)) != 0 ? 1 : 0;
        }
        EXPECT_NEAR(pass_at(k, n, c), static_cast<double>(solved) / draws, 1e-12) << k << " of " << n << ", " << c;
      }
}

TEST(Evaluation, GivesPassAtPowersOfTwoBelowTheSamples) {
  const Sample lost{"19", false, true};
  // Three tasks of five samples: one right of five, two of four (one failed), one that has a single valid sample.
  const Evaluation evaluation =
      summarize({group_of({kRight, kWrong, kWrong, kWrong, kWrong}), group_of({kRight, kRight, kWrong, kWrong, lost}),
                 group_of({kRight, lost, lost, lost, lost})},
                "");
  ASSERT_EQ(evaluation.pass_at.size(), 2u);
  EXPECT_NEAR(evaluation.pass_at.at(2), (0.4 + (1 - 1.0 / 6)) / 2, 1e-12);  // the third task has no two samples
  EXPECT_NEAR(evaluation.pass_at.at(4), (0.8 + 1) / 2, 1e-12);
  EXPECT_NEAR(evaluation_metrics(evaluation, "gsm8k", 5).at("val-core/gsm8k/success/pass@2"), evaluation.pass_at.at(2),
              0);
  EXPECT_EQ(nlohmann::json::parse(evaluation_json(evaluation)).at("pass_at").at("4"), evaluation.pass_at.at(4));
  const std::string table = evaluation_table({{"after", evaluation}}, "");
  EXPECT_NE(table.find("solved by any of 2        61.7 %"), std::string::npos) << table;
  EXPECT_TRUE(summarize({group_of({kRight, kWrong})}, "").pass_at.empty());
}

TEST(Evaluation, HasNoMajorityWhereNothingIsAnswered) {
  const Evaluation evaluation = summarize({group_of({kSilent, {"", true}})}, "");
  EXPECT_FALSE(evaluation.majority.has_value());
  EXPECT_EQ(evaluation_metrics(evaluation, "sokoban", 2).count("val-core/sokoban/success/maj@2"), 0u);
  EXPECT_FALSE(nlohmann::json::parse(evaluation_json(evaluation)).contains("majority"));
  const std::string table = evaluation_table({{"without", evaluation}, {"with", summarize(four_tasks(), "")}}, "");
  EXPECT_NE(table.find("solved by the majority    -"), std::string::npos) << table;
  EXPECT_EQ(evaluation_table({{"without", evaluation}}, "").find("majority"), std::string::npos);
}

}  // namespace
}  // namespace carnot
