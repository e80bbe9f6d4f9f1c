// Values, plans and agreement of an oracle, against plain loops and known truths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "carnot/core/base/random.h"
#include "carnot/studies/correlation.h"
#include "carnot/studies/credit_agreement.h"
#include "carnot/studies/method_credit.h"
#include "carnot/studies/oracle_plan.h"
#include "carnot/studies/oracle_report.h"
#include "carnot/studies/oracle_values.h"
#include "testing/random_groups.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using Scores = std::vector<std::optional<double>>;

std::vector<Group> some_groups(std::uint64_t seed) {
  RandomStream random(seed);
  return testing::random_groups(random, {.groups = 12, .columns = testing::all_columns()});
}

std::vector<int> numbers_below(std::size_t count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Scores random_scores(RandomStream& random, int count) {
  Scores scores;
  for (int i = 0; i < count; ++i) scores.push_back(random.chance(0.1) ? std::nullopt : std::optional(random.normal()));
  return scores;
}

TEST(Oracle, AdvantagesOfATrajectorySumToItsScoreMinusTheValueOfItsPrompt) {
  const std::vector<Group> groups = some_groups(3);
  const auto all = trajectories(groups);
  const auto chosen = choose_trajectories(all, 1000, 1);
  OraclePlan plan = plan_oracle(all, chosen, testing::small_tokenizer(), "");
  RandomStream random(5);
  for (OracleTurn& turn : plan.turns) {  // random tokens have no tags
    EXPECT_EQ(turn.inside, -1);
    turn.inside = static_cast<int>(plan.states.size());
    plan.states.push_back({.trajectory = turn.trajectory, .turn = turn.turn, .begun = 1});
  }
  std::vector<StateValue> values;
  for (std::size_t s = 0; s < plan.states.size(); ++s)
    values.push_back(value_of(random_scores(random, 12), std::nullopt));
  for (const OracleHalf half : {OracleHalf::Both, OracleHalf::First, OracleHalf::Second}) {
    std::map<int, double> sums, parts, starts;
    for (const OracleTurn& turn : plan.turns) {
      const OracleAdvantage advantage = advantage_of(turn, values, half);
      sums[turn.trajectory] += advantage.turn;
      parts[turn.trajectory] += advantage.thought + advantage.action;
      const StateValue& before = values[turn.before];
      if (turn.turn == 0)
        starts[turn.trajectory] = half == OracleHalf::Both    ? before.mean
                                  : half == OracleHalf::First ? before.first_half
                                                              : before.second_half;
    }
    ASSERT_EQ(sums.size(), chosen.size());
    ASSERT_GT(sums.size(), 20u);
    for (const auto& [i, sum] : sums) {
      EXPECT_NEAR(sum, all[i].penalised_score() - starts[i], 1e-12);
      EXPECT_NEAR(parts[i], sum, 1e-12);
    }
  }
}

TEST(Oracle, EveryTurnBoundaryIsAStateAndAPromptIsOneForItsGroup) {
  const std::vector<Group> groups = some_groups(4);
  const auto all = trajectories(groups);
  const OraclePlan plan = plan_oracle(all, choose_trajectories(all, 1000, 1), testing::small_tokenizer(), "");
  std::map<std::pair<int, std::vector<TokenId>>, int> prompts;
  std::size_t later = 0;
  for (const OracleTurn& turn : plan.turns) {
    const Trajectory& one = all[turn.trajectory];
    EXPECT_EQ(turn.after >= 0, turn.turn + 1 < one.num_turns());
    const OracleState& state = plan.states[turn.before];
    EXPECT_EQ(state.turn, turn.turn);
    later += turn.turn > 0 ? 1 : 0;
    if (turn.turn > 0) {
      EXPECT_EQ(state.trajectory, turn.trajectory);
      continue;
    }
    const auto tokens = one.tokens();
    const std::vector<TokenId> prompt(tokens.begin(), tokens.begin() + one.sampled_begin(0));
    const auto [found, is_new] = prompts.try_emplace({one.group_index, prompt}, turn.before);
    EXPECT_EQ(found->second, turn.before);
  }
  EXPECT_EQ(plan.states.size(), prompts.size() + later);
}

TEST(Oracle, ChosenTrajectoriesHaveDepthsAndScoresInProportion) {
  std::vector<Group> groups(1);
  for (int i = 0; i < 400; ++i) {
    Tree tree;
    for (int k = 0; k < 1 + i % 4; ++k)
      tree.turns.push_back({.parent = k - 1, .tokens = {1, 2}, .sampled_begin = 1, .sampled_end = 2});
    tree.leaves.push_back({.turn = i % 4, .score = i % 5 == 0 ? 1.0 : 0.0, .dropped = i >= 320});
    groups[0].trees.push_back(std::move(tree));
  }
  const auto all = trajectories(groups);
  const auto chosen = choose_trajectories(all, 80, 7);
  ASSERT_EQ(chosen.size(), 80u);
  std::map<std::pair<int, double>, int> counts;
  for (const int i : chosen) {
    EXPECT_LT(i, 320);
    ++counts[{all[i].num_turns(), all[i].leaf().score}];
  }
  for (const auto& [stratum, count] : counts) EXPECT_NEAR(count, stratum.second == 1 ? 4 : 16, 1);
  EXPECT_NE(chosen, choose_trajectories(all, 80, 8));
  EXPECT_EQ(choose_trajectories(all, 500, 7), numbers_below(320));
}

TEST(Oracle, ScoresThatWereLostAreLeftOut) {
  const Scores scores{1.0, std::nullopt, 0.0, 1.0, 1.0, 1.0};
  const auto levels = score_levels(std::vector<Scores>{scores});
  ASSERT_TRUE(levels.has_value());
  const StateValue value = value_of(scores, levels);
  EXPECT_EQ(value.count, 5);
  EXPECT_DOUBLE_EQ(value.mean, 0.8);
  EXPECT_DOUBLE_EQ(value.first_half, 0.5);
  EXPECT_DOUBLE_EQ(value.second_half, 1);
  const Interval wilson = wilson_interval(4, 5);
  EXPECT_DOUBLE_EQ(value.interval.low, wilson.low);
  EXPECT_DOUBLE_EQ(value.interval.high, wilson.high);
  EXPECT_TRUE(std::isnan(value_of(Scores{std::nullopt}, levels).mean));
  EXPECT_FALSE(score_levels(std::vector<Scores>{{1.0, 2.0, 3.0}}));
  const StateValue shifted = value_of(Scores{9.0, 9.0, 1.0, 9.0}, ScoreLevels{.low = 1, .high = 9});
  EXPECT_DOUBLE_EQ(shifted.interval.low, 1 + 8 * wilson_interval(3, 4).low);
}

TEST(Oracle, CreditIsTheTurnsAdvantageOnItsSampledTokensWhereAllAreKnown) {
  const std::vector<Group> groups = some_groups(9);
  const auto all = trajectories(groups);
  const OraclePlan plan = plan_oracle(all, choose_trajectories(all, 1000, 1), testing::small_tokenizer(), "");
  std::vector<StateValue> values;
  RandomStream random(8);
  for (std::size_t s = 0; s < plan.states.size(); ++s) values.push_back(value_of(random_scores(random, 12), {}));
  const int unknown = plan.turns.front().trajectory;
  values[static_cast<std::size_t>(plan.turns.front().before)] = value_of(Scores{std::nullopt}, {});
  const std::map<int, Credit> credits = oracle_credit(all, plan, values);
  EXPECT_FALSE(credits.contains(unknown));
  std::size_t turns = 0;
  for (const OracleTurn& turn : plan.turns) {
    const auto credit = credits.find(turn.trajectory);
    if (credit == credits.end()) continue;
    const Trajectory& one = all[static_cast<std::size_t>(turn.trajectory)];
    EXPECT_NEAR(mean_credit(credit->second, one.sampled_begin(turn.turn), one.sampled_end(turn.turn)),
                one.turn(turn.turn).num_sampled() > 0 ? advantage_of(turn, values).turn : 0, 1e-12);
    ++turns;
  }
  EXPECT_GT(turns, 20u);
}

// With a known truth: advantages are measured with noise, credit follows the truth.
TEST(Oracle, ReliabilityTurnsAMeasuredCorrelationIntoTheTrueOne) {
  RandomStream random(11);
  constexpr double kSignal = 0.3, kNoise = 0.4;  // of all continuations; a half has sqrt(2) of it
  ComparedCredit pairs;
  std::vector<double> truth, first, second;
  for (int i = 0; i < 40000; ++i) {
    truth.push_back(kSignal * random.normal());
    first.push_back(truth.back() + std::sqrt(2.0) * kNoise * random.normal());
    second.push_back(truth.back() + std::sqrt(2.0) * kNoise * random.normal());
    pairs.add(truth.back() + 0.2 * random.normal(), (first.back() + second.back()) / 2, kNoise, i / 20);
  }
  const Reliability reliability = reliability_of(first, second);
  EXPECT_NEAR(reliability.value.value(), 0.09 / (0.09 + 0.16), 0.015);
  EXPECT_NEAR(reliability.signal_deviation, kSignal, 0.01);
  const CreditAgreement agreement = agreement_of(pairs, reliability, 2);
  EXPECT_NEAR(agreement.corrected.value(), pearson(pairs.credit, truth).value(), 0.02);
  EXPECT_LT(agreement.pearson.value(), 0.8 * agreement.corrected.value());
  EXPECT_EQ(agreement.pearson, pearson(pairs.credit, pairs.advantage));
  ASSERT_TRUE(agreement.interval.has_value());
}

TEST(Oracle, TheRightSignIsCountedWhereTheAdvantageIsClear) {
  ComparedCredit pairs;
  pairs.add(1, 0.5, 0.2, 0);    // clear, right
  pairs.add(-1, 0.5, 0.2, 0);   // clear, wrong
  pairs.add(0, -0.5, 0.2, 1);   // clear, no credit
  pairs.add(-2, -0.5, 0, 2);    // clear, right
  pairs.add(-2, -0.5, 0.3, 3);  // not clear
  pairs.add(1, 0, 0, 4);        // no advantage
  const CreditAgreement agreement = agreement_of(pairs, {}, 1);
  EXPECT_EQ(agreement.clear, 4);
  EXPECT_EQ(agreement.right, 2);
  EXPECT_FALSE(agreement.corrected);
}

TEST(Oracle, ACreditThatIsTheAdvantageCorrelatesFullyAtEveryTurnAndSpan) {
  const std::vector<Group> groups = some_groups(6);
  const auto all = trajectories(groups);
  OraclePlan plan = plan_oracle(all, choose_trajectories(all, 1000, 1), testing::small_tokenizer(), "");
  RandomStream random(8);
  std::vector<StateValue> values;
  for (std::size_t s = 0; s < plan.states.size(); ++s)
    values.push_back(value_of(random_scores(random, 40), std::nullopt));
  MethodCredits credits;
  credits.methods = {{.name = "oracle", .table = fresh_credit(all)}, {.name = "none", .table = fresh_credit(all)}};
  for (const OracleTurn& turn : plan.turns) {
    Credit& credit = credits.methods[0].table[turn.trajectory];
    add_to_turn(credit.advantage, all[turn.trajectory], turn.turn, 2 * advantage_of(turn, values).turn);
    for (double& weight : sampled_part(credit.weight, all[turn.trajectory], turn.turn)) weight = 0.5;
  }
  const AnalysisReport report =
      oracle_report({.all = all, .plan = plan, .values = values, .credits = credits, .seed = 1});
  const Table& methods = report.tables[0];
  EXPECT_NEAR(methods.only("method", "oracle").numbers("Pearson")[0], 1, 1e-12);
  EXPECT_EQ(methods.only("method", "oracle").numbers("right sign")[0], 1);
  EXPECT_TRUE(std::isnan(methods.only("method", "none").numbers("Pearson")[0]));
  const auto by_turn = report.tables[1].only("method", "oracle").numbers("Pearson");
  ASSERT_GT(by_turn.size(), 1u);
  for (const double r : by_turn) EXPECT_TRUE(std::isnan(r) || std::abs(r - 1) < 1e-12) << r;
  const auto turns = std::find_if(report.tables.begin(), report.tables.end(),
                                  [](const Table& table) { return table.name == "turns"; });
  EXPECT_THAT(turns->numbers("oracle"),
              ::testing::Pointwise(::testing::DoubleNear(1e-12), turns->numbers("advantage")));
}

}  // namespace
}  // namespace carnot
