#include "carnot/core/credit/reward.h"

#include <gtest/gtest.h>

#include <cmath>

#include "testing/random_groups.h"

namespace carnot {
namespace {

TEST(Rewards, ArePlacedOnTheLastSampledTokenAtFirst) {
  RandomStream random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const auto groups = testing::random_groups(random, {.dropped_share = 0.2});
    const auto all = trajectories(groups);
    const CreditTable table = fresh_credit(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto sampled = all[i].sampled();
      std::size_t last = sampled.size() - 1;
      for (std::size_t t = 0; t < sampled.size(); ++t)
        if (sampled[t]) last = t;
      const double score = all[i].leaf().is_included() ? all[i].penalised_score() : 0;
      ASSERT_EQ(table[i].total_reward(), score);
      ASSERT_EQ(table[i].reward[last], score);
    }
  }
}

TEST(TurnRewards, ArePlacedOnTheTurnThatEarnedThem) {
  Tree tree;
  tree.turns.push_back({.tokens = {1, 2, 3},
                        .sampled_begin = 0,
                        .sampled_end = 2,
                        .spans = {{SpanKind::Action, 0, 2}, {SpanKind::Observation, 2, 3}},
                        .reward = 0.25});
  tree.turns.push_back({.parent = 0, .tokens = {4}, .spans = {{SpanKind::Prompt, 0, 1}}, .reward = 0.5});
  tree.turns.push_back({.parent = 1,
                        .tokens = {5, 6},
                        .sampled_begin = 0,
                        .sampled_end = 2,
                        .spans = {{SpanKind::Action, 0, 2}},
                        .reward = 1,
                        .penalty = -0.125});
  tree.leaves.push_back({.turn = 2, .score = 1.75});
  Group group;
  group.trees.push_back(tree);
  const std::vector<Group> groups = {group};
  const CreditTable table = run_credit(std::vector{turn_rewards()}, trajectories(groups));
  EXPECT_EQ(table[0].reward, (std::vector<double>{0, 0.75, 0, 0, 0, 0.875}));
}

TEST(KlInReward, SubtractsTheLogRatioOfSampledTokens) {
  RandomStream random(8);
  const auto groups =
      testing::random_groups(random, {.groups = 40, .columns = {Column::LogProbOld, Column::LogProbReference}});
  const auto all = trajectories(groups);
  const CreditTable before = fresh_credit(all);
  const CreditTable after = run_credit(std::vector{kl_in_reward(0.5)}, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto sampled = all[i].sampled();
    const auto old = all[i].column(Column::LogProbOld);
    const auto reference = all[i].column(Column::LogProbReference);
    for (std::size_t t = 0; t < sampled.size(); ++t) {
      const double kl = sampled[t] && all[i].leaf().is_included() ? old[t] - reference[t] : 0;
      EXPECT_DOUBLE_EQ(after[i].reward[t], before[i].reward[t] - 0.5 * kl);
    }
  }
}

TEST(KlInReward, WithoutCoefficientNeedsNoReference) {
  RandomStream random(9);
  const auto groups = testing::random_groups(random);
  const auto all = trajectories(groups);
  EXPECT_EQ(run_credit(std::vector{kl_in_reward(0)}, all)[0].reward, fresh_credit(all)[0].reward);
}

}  // namespace
}  // namespace carnot
