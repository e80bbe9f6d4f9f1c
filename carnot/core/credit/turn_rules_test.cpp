#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "carnot/core/credit/gae.h"
#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/step_group.h"
#include "carnot/core/credit/tree_relative.h"
#include "carnot/core/credit/turn_gain.h"
#include "carnot/core/credit/turn_group_gain.h"
#include "reference/group_advantage.h"
#include "reference/turn_credit.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

/// Inserts further prompt tokens before the tree's first turns.
void prepend_prompt(Tree& tree, int tokens) {
  for (Turn& turn : tree.turns) {
    if (turn.parent >= 0) continue;
    turn.tokens.insert(turn.tokens.begin(), tokens, 0);
    turn.sampled_begin += tokens;
    turn.sampled_end += tokens;
    for (Span& span : turn.spans) {
      span.begin += tokens;
      span.end += tokens;
    }
    turn.spans.insert(turn.spans.begin(), {SpanKind::Prompt, 0, tokens});
  }
}

/// What turn k of trajectory i should receive on each sampled token.
using Expected = std::function<double(std::span<const Trajectory>, std::size_t i, int k)>;

void compare(std::vector<double> Credit::* column, const std::vector<CreditRule>& chain, std::uint64_t seed,
             const Expected& expected, double tolerance = 1e-9) {
  RandomStream random(seed);
  int compared = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const auto groups = testing::random_groups(random, {.groups = 2, .dropped_share = 0.1});
    const auto all = trajectories(groups);
    const CreditTable table = run_credit(chain, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].leaf().is_included()) continue;
      for (int k = 0; k < all[i].num_turns(); ++k) {
        if (all[i].turn(k).num_sampled() == 0) continue;
        const double value = expected(all, i, k);
        for (int t = all[i].sampled_begin(k); t < all[i].sampled_end(k); ++t, ++compared)
          ASSERT_NEAR((table[i].*column)[t], value, tolerance)
              << "trial " << trial << " trajectory " << i << " turn " << k;
      }
    }
  }
  EXPECT_GT(compared, 10000);
}

TEST(StepGroup, EqualsItsDefinitionOnRandomGroups) {
  compare(&Credit::advantage, {step_group({.weight = 0.5, .discount = 0.9})}, 31,
          [](auto all, std::size_t i, int k) { return 0.5 * reference::step_advantage(all, i, k, 0.9); });
}

TEST(StepGroup, WithoutWeightAddsNothing) {
  compare(&Credit::advantage, {step_group({.weight = 0})}, 32, [](auto, std::size_t, int) { return 0.0; }, 0);
}

TEST(StepGroup, GroupsSimilarStatesWithTheFirstOfTheirKind) {
  const std::vector<std::string> anchors = {"abcdefghij", "abcdefghix", "zzz", "abcdefghij", "", ""};
  EXPECT_EQ(group_anchors(anchors, 1), (std::vector<int>{0, 1, 2, 0, 4, 5}));
  EXPECT_EQ(group_anchors(anchors, 0.9), (std::vector<int>{0, 0, 2, 0, 4, 5}));
}

TEST(Similarity, IsTheShareOfCommonBlocks) {
  EXPECT_EQ(similarity("", ""), 1);
  EXPECT_EQ(similarity("abc", ""), 0);
  EXPECT_DOUBLE_EQ(similarity("abcd", "bcde"), 0.75);
  EXPECT_DOUBLE_EQ(similarity("private Thread currentThread;", "private volatile Thread currentThread;"), 58.0 / 67);
  EXPECT_DOUBLE_EQ(similarity("häuser", "häusel"), 10.0 / 12);
}

TEST(Similarity, IgnoresPopularCharactersOfLongTextsAsStartsOfBlocks) {
  EXPECT_DOUBLE_EQ(similarity("xb", std::string(199, 'b')), 2.0 / 201);
  EXPECT_EQ(similarity("xb", std::string(200, 'b')), 0);
  // Popular characters still extend a block, and form one where both strings begin with it.
  EXPECT_DOUBLE_EQ(similarity("b", std::string(200, 'b')), 2.0 / 201);
}

TEST(TurnGroupGain, EqualsItsDefinitionOnRandomGroups) {
  const TurnGroupGainOptions options{.weight = 0.7, .discount = 0.8};
  compare(&Credit::advantage, {turn_group_gain(options)}, 33,
          [](auto all, std::size_t i, int k) { return 0.7 * reference::accumulated_gain(all, i, k, 0.8); });
  compare(&Credit::clip_scale, {turn_group_gain(options)}, 33, [](auto all, std::size_t i, int k) {
    return all[i].turn(k).info_gain ? 1 + 0.3 * (2 / (1 + std::exp(-reference::turn_gain_z(all, i, k))) - 1) : 1;
  });
}

TEST(TurnGroupGain, WithoutRescaleSumsWhatRescaleDividesByTheRootOfItsTerms) {
  compare(&Credit::advantage, {turn_group_gain({.discount = 0.8, .rescale = false})}, 33,
          [](auto all, std::size_t i, int k) {
            double terms = 0;
            for (int later = k; later < all[i].num_turns(); ++later) terms += all[i].turn(later).info_gain ? 1 : 0;
            return std::sqrt(terms) * reference::accumulated_gain(all, i, k, 0.8);
          });
}

TEST(TurnGroupGain, WithNeutralSettingsIsTheIdentity) {
  const TurnGroupGainOptions neutral{.weight = 0, .clip_swing = 0};
  compare(&Credit::advantage, {turn_group_gain(neutral)}, 34, [](auto, std::size_t, int) { return 0.0; }, 0);
  compare(&Credit::clip_scale, {turn_group_gain(neutral)}, 34, [](auto, std::size_t, int) { return 1.0; }, 0);
}

/// Chains of one-token turns with these gains on all but the last.
std::vector<Group> chains_with_gains(const std::vector<std::vector<double>>& gains,
                                     const std::vector<double>& outcomes) {
  Group group;
  for (std::size_t i = 0; i < gains.size(); ++i) {
    Tree tree;
    for (std::size_t k = 0; k <= gains[i].size(); ++k) {
      tree.turns.push_back(
          {.parent = static_cast<int>(k) - 1, .tokens = {0}, .sampled_end = 1, .spans = {{SpanKind::Action, 0, 1}}});
      if (k < gains[i].size()) tree.turns.back().info_gain = gains[i][k];
    }
    tree.leaves.push_back({.turn = static_cast<int>(gains[i].size()), .score = outcomes[i]});
    group.trees.push_back(tree);
  }
  return {group};
}

TEST(TurnGroupGain, GivesThePublishedVectors) {
  const auto groups = chains_with_gains({{.30, .10, -.05}, {.10, .20}, {.05}}, {1, 0, 0});
  const auto all = trajectories(groups);
  const auto outcome = group_relative({.normalisation = population_normalisation()});
  const std::vector<std::vector<double>> paper = {
      {1.63865, .70712, 1.41421, 1.41421}, {-.32734, .29287, -.70711}, {-1.63292, -.70711}};
  const std::vector<std::vector<double>> third = {
      {1.48154, 1.20208, 1.41421, 1.41421}, {-.59317, -.40711, -.70711}, {-.98485, -.70711}};
  const std::vector<std::vector<double>> clip = {{1.18023, .86137, 1, 1}, {.93178, 1.13863, 1}, {.87027, 1}};
  const CreditTable one = run_credit(std::vector{outcome, turn_group_gain()}, all);
  const CreditTable other = run_credit(std::vector{outcome, turn_group_gain({.weight = 0.3})}, all);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < paper[i].size(); ++k) {
      EXPECT_NEAR(one[i].advantage[k], paper[i][k], 6e-6);
      EXPECT_NEAR(other[i].advantage[k], third[i][k], 6e-6);
      EXPECT_NEAR(one[i].clip_scale[k], clip[i][k], 6e-6);
    }
}

/// Gains whose mean falls and whose spread grows with the turn, correlated along a trajectory by a shared component.
/// Fewer trajectories reach later turns.
std::vector<std::vector<double>> drifting_gains(RandomStream& random, int trajectories, double shared) {
  std::vector<std::vector<double>> gains;
  for (int i = 0; i < trajectories; ++i) {
    const double common = random.normal();
    gains.emplace_back();
    for (int t = 0; t < 5 - i % 3; ++t) {
      const double own = std::sqrt(shared) * common + std::sqrt(1 - shared) * random.normal();
      gains.back().push_back(1 - 0.3 * t + (0.5 + 0.2 * t) * own);
    }
  }
  return gains;
}

struct Moments {
  double mean = 0;
  double variance = 0;
};

/// Moments of the advantages of turn t, times (gains from there on)^power, over trajectories that have a gain there.
Moments moments_at(const CreditTable& table, const std::vector<std::vector<double>>& gains, std::size_t t,
                   double power = 0) {
  double sum = 0, squares = 0, n = 0;
  for (std::size_t i = 0; i < gains.size(); ++i) {
    if (t >= gains[i].size()) continue;
    const double value = table[i].advantage[t] * std::pow(static_cast<double>(gains[i].size() - t), power);
    sum += value;
    squares += value * value;
    ++n;
  }
  return {.mean = sum / n, .variance = squares / n - sum / n * sum / n};
}

TEST(TurnGroupGain, RemovesTheDriftThatPooledNormalisationKeeps) {
  RandomStream random(39);
  const auto gains = drifting_gains(random, 6000, 0);
  const auto groups = chains_with_gains(gains, std::vector<double>(gains.size(), 0));
  const auto all = trajectories(groups);
  const CreditTable pooled = run_credit(std::vector{turn_gain({.pool = GainPool::Separate, .discount = 0})}, all);
  const CreditTable grouped = run_credit(std::vector{turn_group_gain({.discount = 0})}, all);

  double count = 0, sum = 0;
  const std::vector<double> reached = {6000, 6000, 6000, 4000, 2000};
  for (std::size_t t = 0; t < 5; ++t) {
    count += reached[t];
    sum += reached[t] * (1 - 0.3 * static_cast<double>(t));
  }
  const double pool_mean = sum / count;
  double squares = 0;
  for (std::size_t t = 0; t < 5; ++t) {
    const double mean = 1 - 0.3 * static_cast<double>(t), deviation = 0.5 + 0.2 * static_cast<double>(t);
    squares += reached[t] * (deviation * deviation + (mean - pool_mean) * (mean - pool_mean));
  }
  for (std::size_t t = 0; t < 5; ++t) {
    const double expected = (1 - 0.3 * static_cast<double>(t) - pool_mean) / std::sqrt(squares / count);
    EXPECT_NEAR(moments_at(pooled, gains, t).mean, expected, 0.06) << "turn " << t;
    EXPECT_NEAR(moments_at(grouped, gains, t, 0.5).mean, 0, 1e-9) << "turn " << t;
    EXPECT_NEAR(moments_at(grouped, gains, t, 0.5).variance, 1, 1e-4) << "turn " << t;
  }
}

TEST(TurnGroupGain, KeepsTheSpreadOfSumsIndependentOfTheirLength) {
  // Var(sum of n / sqrt(n)) = 1 + (n - 1) rho for normalised gains with correlation rho.
  for (const double shared : {0.0, 0.2}) {
    RandomStream random(40);
    std::vector<std::vector<double>> gains = drifting_gains(random, 6000, shared);
    std::erase_if(gains, [](const auto& of_member) { return of_member.size() < 5; });
    const auto groups = chains_with_gains(gains, std::vector<double>(gains.size(), 0));
    const CreditTable table = run_credit(std::vector{turn_group_gain()}, trajectories(groups));
    for (std::size_t t = 0; t < 5; ++t)
      EXPECT_NEAR(moments_at(table, gains, t).variance, 1 + (4 - static_cast<double>(t)) * shared, 0.12)
          << "turn " << t;
  }
}

TEST(TurnGain, EqualsItsDefinitionOnRandomGroups) {
  for (const bool separate : {false, true})
    compare(&Credit::advantage, {turn_gain({.pool = separate ? GainPool::Separate : GainPool::Joint, .discount = 0.8})},
            35, [&](auto all, std::size_t i, int k) { return reference::joint_gain(all, i, k, 0.8, separate); });
}

TEST(TreeRelative, EqualsItsDefinitionOnRandomGroups) {
  compare(&Credit::advantage, {tree_relative()}, 36,
          [](auto all, std::size_t i, int) { return reference::tree_advantage(all, i); });
}

TEST(TreeRelative, PerTokenDoesNotSeeThePrompt) {
  RandomStream random(41);
  for (int trial = 0; trial < 100; ++trial) {
    const auto groups = testing::random_groups(random, {.fresh_share = 0});
    auto prompted = groups;
    for (Group& group : prompted)
      for (Tree& tree : group.trees) prepend_prompt(tree, 7);
    const std::vector<CreditRule> chain = {tree_relative({.estimator = TreeEstimator::PerToken})};
    const auto all = trajectories(groups), with_prompt = trajectories(prompted);
    const CreditTable expected = run_credit(chain, all), actual = run_credit(chain, with_prompt);
    for (std::size_t i = 0; i < all.size(); ++i)
      ASSERT_EQ(std::vector<double>(actual[i].advantage.begin() + 7, actual[i].advantage.end()), expected[i].advantage);
  }
}

TEST(SharedPrefix, GivesSharedTurnsTheMeanOfTheirTrajectories) {
  compare(&Credit::advantage, {group_relative(), shared_prefix()}, 37, [](auto all, std::size_t i, int k) {
    std::vector<double> advantage;
    for (const Trajectory& one : all) {
      std::vector<double> peers;
      std::size_t self = 0;
      for (const Trajectory& other : all) {
        if (&other == &one) self = peers.size();
        if (other.group_index == one.group_index && other.leaf().is_included())
          peers.push_back(other.penalised_score());
      }
      advantage.push_back(one.leaf().is_included() ? reference::group_relative(peers, self, true) : 0);
    }
    return reference::shared_mean(all, i, k, advantage);
  });
}

TEST(BilevelGae, EqualsItsDefinitionOnRandomGroups) {
  RandomStream random(38);
  int compared = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const auto groups = testing::random_groups(random, {.groups = 2, .columns = {Column::Value, Column::Reward}});
    const auto all = trajectories(groups);
    const BilevelGaeOptions options{
        .gamma = random.uniform(), .lambda = random.uniform(), .turn_gamma = random.uniform(), .whiten = false};
    const CreditTable table = run_credit(std::vector{bilevel_gae(options)}, all);
    const CreditTable fresh = fresh_credit(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].leaf().is_included()) continue;
      const auto values = all[i].column(Column::Value);
      std::vector<double> reward, value;
      std::vector<std::size_t> place;
      std::vector<bool> ends;
      for (int k = 0; k < all[i].num_turns(); ++k)
        for (int t = all[i].sampled_begin(k); t < all[i].sampled_end(k); ++t) {
          place.push_back(t);
          reward.push_back(fresh[i].reward[place.back()]);
          value.push_back(values[place.back()]);
          ends.push_back(t + 1 == all[i].sampled_end(k));
        }
      for (std::size_t t = 0; t < place.size(); ++t, ++compared)
        ASSERT_NEAR(
            table[i].advantage[place[t]],
            reference::bilevel_advantage(reward, value, ends, t, options.gamma, options.lambda, options.turn_gamma),
            1e-9);
    }
  }
  EXPECT_GT(compared, 10000);
}

}  // namespace
}  // namespace carnot
