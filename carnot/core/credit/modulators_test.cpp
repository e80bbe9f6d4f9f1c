#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "carnot/core/credit/entropy_modulate.h"
#include "carnot/core/credit/gae.h"
#include "carnot/core/credit/group_estimator.h"
#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/reinforce.h"
#include "carnot/core/credit/reward.h"
#include "carnot/core/credit/span_weight.h"
#include "carnot/core/credit/step_group.h"
#include "carnot/core/credit/token_gain.h"
#include "carnot/core/credit/tree_relative.h"
#include "carnot/core/credit/turn_gain.h"
#include "carnot/core/credit/turn_group_gain.h"
#include "carnot/core/objective/adaptive_coefficient.h"
#include "reference/turn_credit.h"
#include "testing/absent_members.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A rule that adds a different advantage to every sampled token.
CreditRule distinct_advantages() {
  return {.name = "distinct", .apply = [](std::span<const Trajectory> all, CreditTable& table) {
            for (std::size_t i = 0; i < all.size(); ++i)
              for (std::size_t t = 0; t < table[i].advantage.size(); ++t)
                if (all[i].leaf().is_included())
                  table[i].advantage[t] = 1 + 0.1 * static_cast<double>(i) + 0.01 * static_cast<double>(t);
          }};
}

/// The same by score, independent of the trajectory's index.
CreditRule distinct_by_score() {
  return {.name = "distinct_by_score", .apply = [](std::span<const Trajectory> all, CreditTable& table) {
            for (std::size_t i = 0; i < all.size(); ++i)
              for (std::size_t t = 0; t < table[i].advantage.size(); ++t)
                if (all[i].leaf().is_included())
                  table[i].advantage[t] = all[i].leaf().score + 0.01 * static_cast<double>(t);
          }};
}

TEST(EntropyModulate, GivesThePublishedVectors) {
  const std::vector<double> factors = modulation(std::vector<double>{.20, .50, .35, 1.00}, {});
  const std::vector<double> expected = {1.3868674, .9531791, 1.1497535, .5102000};
  for (std::size_t r = 0; r < expected.size(); ++r) EXPECT_NEAR(factors[r], expected[r], 6e-8);
  EXPECT_THAT(modulation(std::vector<double>{.20, .25}, {}), ElementsAre(1, 1));
  EXPECT_THAT(modulation(std::vector<double>{.7}, {}), ElementsAre(1));
}

TEST(EntropyModulate, EqualsItsDefinitionOnRandomGroups) {
  RandomStream random(41);
  int moved = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const auto groups =
        testing::random_groups(random, {.groups = 2, .dropped_share = 0.1, .columns = {Column::EntropyOld}});
    const auto all = trajectories(groups);
    const double strength = 2 * random.uniform() - 1;
    const CreditTable before = run_credit(std::vector{distinct_advantages()}, all);
    const CreditTable after =
        run_credit(std::vector{distinct_advantages(), entropy_modulate({.lambda = strength})}, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].leaf().is_included()) continue;
      for (int k = 0; k < all[i].num_turns(); ++k) {
        if (all[i].turn(k).num_sampled() == 0) continue;
        const double factor = reference::entropy_factor(all, i, k, strength);
        moved += factor != 1 ? 1 : 0;
        for (int t = all[i].sampled_begin(k); t < all[i].sampled_end(k); ++t) {
          const auto at = static_cast<std::size_t>(t);
          ASSERT_NEAR(after[i].advantage[at], factor * before[i].advantage[at], 1e-9) << "trial " << trial;
        }
      }
    }
  }
  EXPECT_GT(moved, 2000);
}

TEST(EntropyModulate, FactorsHaveMeanOneAndShufflePermutesThem) {
  RandomStream random(42);
  int different = 0;
  for (int trial = 0; trial < 50; ++trial) {
    const auto groups = testing::random_groups(
        random, {.groups = 1, .branch_share = 0, .invalid_share = 0, .columns = {Column::EntropyOld}});
    const auto all = trajectories(groups);
    const auto factors_of = [&](bool shuffle) {
      const CreditRule ones{.name = "ones", .apply = [](auto, CreditTable& table) {
                              for (Credit& credit : table) credit.advantage.assign(credit.advantage.size(), 1.0);
                            }};
      const CreditTable table = run_credit(std::vector{ones, entropy_modulate({.shuffle = shuffle})}, all);
      std::vector<double> factors;
      for (std::size_t i = 0; i < all.size(); ++i)
        for (int k = 0; k < all[i].num_turns(); ++k)
          if (all[i].turn(k).num_sampled() > 0) factors.push_back(table[i].advantage[all[i].sampled_begin(k)]);
      return factors;
    };
    std::vector<double> plain = factors_of(false), dealt = factors_of(true);
    EXPECT_NEAR(std::accumulate(plain.begin(), plain.end(), 0.0), static_cast<double>(plain.size()), 1e-6)
        << "but for epsilon";
    EXPECT_EQ(dealt, factors_of(true));
    different += plain != dealt ? 1 : 0;
    std::sort(plain.begin(), plain.end());
    std::sort(dealt.begin(), dealt.end());
    EXPECT_EQ(plain, dealt);
  }
  EXPECT_GT(different, 20);
}

TEST(EntropyModulate, ComparesWithinTheScopeAskedFor) {
  Group group;
  for (const auto& entropies : {std::vector<double>{.2, 1.0}, std::vector<double>{.5, .5}}) {
    Tree tree;
    for (int k = 0; k < 2; ++k) {
      tree.turns.push_back({.parent = k - 1, .tokens = {0}, .sampled_end = 1, .spans = {{SpanKind::Action, 0, 1}}});
      tree.columns.edit(Column::EntropyOld, k, 1) = {entropies[k]};
    }
    tree.leaves.push_back({.turn = 1});
    group.trees.push_back(tree);
  }
  const std::vector<Group> groups = {group, group};
  const auto all = trajectories(groups);
  const auto factor = [&](ModulationScope scope, std::size_t i) {
    const CreditTable before = run_credit(std::vector{distinct_advantages()}, all);
    const CreditTable after = run_credit(std::vector{distinct_advantages(), entropy_modulate({.scope = scope})}, all);
    return after[i].advantage[0] / before[i].advantage[0];
  };
  EXPECT_NEAR(factor(ModulationScope::Trajectory, 0), modulation(std::vector<double>{.2, 1.0}, {})[0], 1e-12);
  EXPECT_EQ(factor(ModulationScope::Trajectory, 1), 1);
  EXPECT_NEAR(factor(ModulationScope::Group, 1), modulation(std::vector<double>{.5, .2, 1.0, .5}, {})[0], 1e-12);
  EXPECT_NEAR(factor(ModulationScope::Batch, 1), factor(ModulationScope::Group, 1), 1e-12);
}

TEST(SpanWeight, GivesThePublishedVectors) {
  const std::vector<double> weights = action_weights(std::vector<double>{-12, -10, -15, -11}, {});
  const std::vector<double> expected = {1.25, 1.3722076, 1.0837418, 1.3152687};
  for (std::size_t t = 0; t < expected.size(); ++t) EXPECT_NEAR(weights[t], expected[t], 6e-8);
  EXPECT_THAT(action_weights(std::vector<double>{-3, -3}, {}), ElementsAre(1.25, 1.25));
}

TEST(SpanWeight, EqualsItsDefinitionOnRandomGroups) {
  RandomStream random(43);
  int compared = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const auto groups = testing::random_groups(
        random, {.groups = 2, .max_members = 3, .dropped_share = 0.1, .columns = {Column::EnergyReference}});
    const auto all = trajectories(groups);
    const CreditTable table = run_credit(std::vector{span_weight()}, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto sampled = all[i].sampled();
      for (std::size_t t = 0; t < sampled.size(); ++t) {
        if (!sampled[t] || !all[i].leaf().is_included()) continue;
        ASSERT_NEAR(table[i].weight[t], reference::span_weight(all, i, t, 0.1, 0.5), 1e-9) << "trial " << trial;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 3000);
}

TEST(SpanWeight, ReadsTheSignalThatItIsGiven) {
  RandomStream random(44);
  const auto groups =
      testing::random_groups(random, {.groups = 6, .invalid_share = 0, .columns = testing::all_columns()});
  const auto all = trajectories(groups);
  const auto weights = [&](WeightSignal signal) {
    return run_credit(std::vector{span_weight({.signal = signal})}, all);
  };
  const auto place = [&] {
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t t = 0; t < all[i].kinds().size(); ++t)
        if (all[i].kinds()[t] == SpanKind::Action) return std::pair(i, t);
    return std::pair(all.size(), std::size_t{0});
  }();
  const auto [i, t] = place;
  ASSERT_LT(i, all.size());
  std::set<double> different;
  for (WeightSignal signal : {WeightSignal::ReferenceEnergy, WeightSignal::ReferenceEntropy, WeightSignal::Surprisal,
                              WeightSignal::LogProbShift})
    different.insert(weights(signal)[i].weight[t]);
  EXPECT_EQ(different.size(), 4u);
}

TEST(EntropyScale, IsOneWithoutStrengthAndFollowsTheZScore) {
  EXPECT_THAT(entropy_scale(std::vector<double>{1, 2, 3}, 0), ElementsAre(1, 1, 1));
  EXPECT_THAT(entropy_scale(std::vector<double>{1, 2, 3}, 0.2), ElementsAre(0.8, 1, 1.2));
  EXPECT_THAT(entropy_scale(std::vector<double>{2, 2}, 0.2), ElementsAre(1, 1));
  EXPECT_THAT(entropy_scale(std::vector<double>{2}, 0.2), ElementsAre(1));
}

TEST(AddOns, WithNeutralSettingsAreTheIdentityBitForBit) {
  RandomStream random(45);
  const std::vector<CreditRule> neutral = {entropy_modulate({.lambda = 0}), span_weight({.alpha = 1, .beta = 0}),
                                           step_group({.weight = 0}), turn_group_gain({.weight = 0, .clip_swing = 0})};
  for (int trial = 0; trial < 100; ++trial) {
    const auto groups = testing::random_groups(random);
    const auto all = trajectories(groups);
    const CreditTable before = run_credit(std::vector{distinct_advantages()}, all);
    for (const CreditRule& rule : neutral) {
      const CreditTable after = run_credit(std::vector{distinct_advantages(), rule}, all);
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(after[i].advantage, before[i].advantage) << rule.name;
        ASSERT_EQ(after[i].weight, before[i].weight) << rule.name;
        ASSERT_EQ(after[i].clip_scale, before[i].clip_scale) << rule.name;
      }
    }
  }
}

TEST(SharedPrefix, OnChainsIsTheIdentityBitForBit) {
  RandomStream random(46);
  const auto groups = testing::random_groups(random, {.groups = 50, .branch_share = 0});
  const auto all = trajectories(groups);
  const CreditTable before = run_credit(std::vector{distinct_advantages()}, all);
  const CreditTable after = run_credit(std::vector{distinct_advantages(), shared_prefix()}, all);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(after[i].advantage, before[i].advantage);
}

std::vector<CreditRule> rules_behind_rewards() {
  return {leave_one_out(),
          length_weighted_baseline(),
          nonzero_scaled(),
          best_of_group(),
          reinforce(),
          reinforce({.group_baseline = true}),
          bilevel_gae(),
          step_group(),
          step_group({.similarity = 0.5}),
          turn_gain(),
          turn_gain({.pool = GainPool::StepSums, .steps = GainSteps::NonzeroGains}),
          token_gain(),
          turn_group_gain(),
          tree_relative(),
          tree_relative({.estimator = TreeEstimator::Nested}),
          tree_relative({.estimator = TreeEstimator::PerToken}),
          shared_prefix(),
          entropy_modulate(),
          entropy_modulate({.scope = ModulationScope::Batch}),
          span_weight()};
}

std::vector<CreditRule> shaping_rules() {
  return {turn_rewards(), invalid_action_penalty(0.1), overlong_penalty(30, 10, 1),
          normalise_rewards(RewardGrouping::Batch, RewardScaling::MeanStd)};
}

TEST(EveryRule, IsUnmovedByMembersThatDoNotCount) {
  const std::vector<CreditRule> rules = rules_behind_rewards(), shaping = shaping_rules();
  RandomStream random(47);
  int absent = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const auto groups =
        testing::random_groups(random, {.invalid_share = 0.3, .dropped_share = 0.2, .columns = testing::all_columns()});
    absent += testing::absent_members(groups);
    for (const CreditRule& rule : rules) {
      const auto chain = [&](std::span<const Trajectory> all) {
        std::vector<CreditRule> rules_in_order = shaping;
        rules_in_order.push_back(distinct_by_score());
        rules_in_order.push_back(rule);
        return run_credit(rules_in_order, all);
      };
      ASSERT_THAT(testing::changes_by_absent_members(groups, chain), IsEmpty()) << rule.name << " trial " << trial;
    }
  }
  EXPECT_GT(absent, 100);
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t t = 0; t < actual.size(); ++t) ASSERT_NEAR(actual[t], expected[t], 1e-9) << what;
}

/// Checks what a rule of this kind must not change, and how it treats an existing advantage.
void expect_kind(const CreditRule& rule, std::span<const Trajectory> all) {
  const CreditTable before = run_credit(std::vector{distinct_advantages()}, all);
  const CreditTable after = run_credit(std::vector{distinct_advantages(), rule}, all);
  const CreditTable alone = run_credit(std::vector{rule}, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool adds = rule.kind == RuleKind::Base, scales = rule.kind == RuleKind::Modulator;
    ASSERT_TRUE(rule.kind == RuleKind::Shaping || after[i].reward == before[i].reward) << rule.name;
    ASSERT_TRUE(rule.kind == RuleKind::Weight || after[i].weight == before[i].weight) << rule.name;
    ASSERT_TRUE(adds || after[i].clip_scale == before[i].clip_scale) << rule.name;
    ASSERT_TRUE(adds || scales || after[i].advantage == before[i].advantage) << rule.name;
    const std::size_t size = before[i].advantage.size();
    if (scales) expect_near(alone[i].advantage, std::vector<double>(size, 0.0), rule.name);
    std::vector<double> sum = before[i].advantage;
    for (std::size_t t = 0; t < size; ++t) sum[t] += alone[i].advantage[t];
    if (adds) expect_near(after[i].advantage, sum, rule.name);
  }
}

TEST(EveryRule, DoesWhatItsKindSays) {
  std::vector<CreditRule> rules = rules_behind_rewards();
  for (CreditRule& rule : shaping_rules()) rules.push_back(std::move(rule));
  RandomStream random(48);
  for (int trial = 0; trial < 40; ++trial) {
    const auto groups = testing::random_groups(random, {.columns = testing::all_columns()});
    for (const CreditRule& rule : rules) expect_kind(rule, trajectories(groups));
  }
}

TEST(EntropyCoefficient, GivesThePublishedVectors) {
  const auto after = [](double entropy) {
    EntropyCoefficient state{.coefficient = 2e-4, .step = 30};
    state.update({.enabled = true}, entropy);
    return state.coefficient;
  };
  EXPECT_NEAR(after(.01), 2.4e-4, 1e-12);
  EXPECT_NEAR(after(.1), 2e-4, 1e-12);
  EXPECT_NEAR(after(.5), 1e-5, 1e-12);
}

TEST(EntropyCoefficient, ContinuesFromAStoredState) {
  const AdaptiveEntropyOptions options{.enabled = true, .warmup = 2};
  EntropyCoefficient straight{.coefficient = 2e-4};
  for (int step = 0; step < 4; ++step) straight.update(options, 0.01);
  EntropyCoefficient resumed{.coefficient = straight.coefficient, .step = straight.step};
  straight.update(options, 0.3);
  resumed.update(options, 0.3);
  EXPECT_EQ(straight.coefficient, resumed.coefficient);
  EXPECT_EQ(resumed.step, 5);
}

TEST(AdaptiveCoefficients, AreConstantUnlessEnabled) {
  EntropyCoefficient entropy{.coefficient = 0.5};
  entropy.update({}, 100);
  EXPECT_EQ(entropy.coefficient, 0.5);
  KlCoefficient kl{.coefficient = 0.5};
  kl.update({}, 100, 64);
  EXPECT_EQ(kl.coefficient, 0.5);
}

TEST(Overlong, GivesThePublishedVectors) {
  EXPECT_EQ(overlong_loss(16000, 20480, 4096, 1), 0);
  EXPECT_EQ(overlong_loss(16384, 20480, 4096, 1), 0);
  EXPECT_EQ(overlong_loss(18432, 20480, 4096, 1), -0.5);
  EXPECT_EQ(overlong_loss(20480, 20480, 4096, 1), -1);
}

}  // namespace
}  // namespace carnot
