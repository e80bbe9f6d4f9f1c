#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/credit/group_estimator.h"
#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/reinforce.h"
#include "reference/group_advantage.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

/// One group of chains of one turn; lengths[i] sampled tokens each.
std::vector<Group> group_of(const std::vector<double>& scores, const std::vector<int>& lengths) {
  Group group;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    Tree tree;
    tree.turns.push_back({.tokens = std::vector<TokenId>(lengths[i], 0),
                          .sampled_end = lengths[i],
                          .spans = {{SpanKind::Action, 0, lengths[i]}}});
    tree.leaves.push_back({.turn = 0, .score = scores[i]});
    group.trees.push_back(tree);
  }
  return {group};
}

std::vector<double> first_advantages(const CreditRule& rule, const std::vector<double>& scores,
                                     const std::vector<int>& lengths) {
  const auto groups = group_of(scores, lengths);
  std::vector<double> out;
  for (const Credit& credit : run_credit(std::vector{rule}, trajectories(groups))) out.push_back(credit.advantage[0]);
  return out;
}

TEST(LeaveOneOut, GivesThePublishedVectors) {
  const auto advantage = first_advantages(leave_one_out(), {1, 0, 0, 1, 0, 0, 0, 0}, std::vector<int>(8, 1));
  EXPECT_NEAR(advantage[0], 0.8571429, 5e-8);
  EXPECT_NEAR(advantage[1], -0.2857143, 5e-8);
}

TEST(LeaveOneOut, EqualsItsDefinitionOnRandomGroups) {
  RandomStream random(21);
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<double> scores(1 + random.below(12));
    for (double& x : scores) x = random.normal();
    const auto advantage = first_advantages(leave_one_out(), scores, std::vector<int>(scores.size(), 1));
    for (std::size_t i = 0; i < scores.size(); ++i)
      ASSERT_NEAR(advantage[i], reference::leave_one_out(scores, i), 1e-12);
  }
}

TEST(LeaveOneOut, OfEqualScoresIsExactlyZero) {
  for (double a : first_advantages(leave_one_out(), std::vector<double>(8, 0.7), std::vector<int>(8, 1)))
    EXPECT_EQ(a, 0);
}

TEST(LengthWeightedBaseline, CountsATrajectoryByItsTokens) {
  const auto advantage = first_advantages(length_weighted_baseline(), {1, 0}, {3, 1});
  EXPECT_DOUBLE_EQ(advantage[0], 0.25);
  EXPECT_DOUBLE_EQ(advantage[1], -0.75);
  EXPECT_EQ(first_advantages(length_weighted_baseline(), {0.7}, {3})[0], 0);
}

TEST(NonzeroScaled, GrowsWhereFewTrajectoriesHaveAReward) {
  const auto advantage = first_advantages(nonzero_scaled(), {1, 0, 0, 0}, {1, 1, 1, 1});
  EXPECT_DOUBLE_EQ(advantage[0], 4 * 0.75);
  EXPECT_DOUBLE_EQ(advantage[1], 4 * -0.25);
}

TEST(BestOfGroup, GetsItsLeadAndTheOthersNothing) {
  const auto advantage = first_advantages(best_of_group({.divide_by_std = false}), {0.2, 1, 0.7}, {1, 1, 1});
  EXPECT_DOUBLE_EQ(advantage[0], 0);
  EXPECT_DOUBLE_EQ(advantage[1], 0.3);
  for (double a : first_advantages(best_of_group(), {1, 1, 0}, {1, 1, 1})) EXPECT_EQ(a, 0);
  EXPECT_EQ(first_advantages(best_of_group(), {1}, {1})[0], 0);
}

TEST(Reinforce, EqualsItsDefinitionOnRandomGroups) {
  RandomStream random(22);
  int compared = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const auto groups = testing::random_groups(random, {.groups = 2, .columns = {Column::Reward}});
    const auto all = trajectories(groups);
    const double gamma = random.uniform();
    const bool baseline = trial % 2 == 0;
    const CreditTable table = run_credit(std::vector{reinforce({.gamma = gamma, .group_baseline = baseline})}, all);
    const CreditTable fresh = fresh_credit(all);
    std::vector<double> expected, actual;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].leaf().is_included()) continue;
      std::vector<double> rewards, peers;
      std::size_t self = 0;
      for (std::size_t j = 0; j < all.size(); ++j) {
        if (j == i) self = peers.size();
        if (all[j].group_index == all[i].group_index && all[j].leaf().is_included())
          peers.push_back(fresh[j].total_reward());
      }
      const auto sampled = all[i].sampled();
      for (std::size_t t = 0; t < sampled.size(); ++t) {
        if (!sampled[t]) continue;
        rewards.push_back(fresh[i].reward[t]);
        actual.push_back(table[i].advantage[t]);
      }
      for (std::size_t t = 0; t < rewards.size(); ++t) {
        double value = 0;
        for (std::size_t s = t; s < rewards.size(); ++s)
          value += std::pow(gamma, static_cast<double>(s - t)) * rewards[s];
        expected.push_back(baseline ? reference::group_relative(peers, self, false) : value);
      }
    }
    for (std::size_t t = 0; t < expected.size(); ++t, ++compared)
      ASSERT_NEAR(actual[t], reference::whitened(expected, t), 1e-8) << "trial " << trial;
  }
  EXPECT_GT(compared, 5000);
}

}  // namespace
}  // namespace carnot
