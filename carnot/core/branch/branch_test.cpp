#include "carnot/core/branch/branch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "carnot/core/branch/balanced_branch.h"
#include "carnot/core/branch/entropy_branch.h"
#include "carnot/core/branch/tree_expand.h"

namespace carnot {
namespace {

/// Share of evenly spaced draws that branch: the probability, to 1e-4.
double branch_probability(const BranchPolicy& policy, double rise, int consecutive) {
  constexpr int kDraws = 20000;
  int branches = 0;
  for (int i = 0; i < kDraws; ++i)
    branches += policy.branch_here({.turn_entropy = 1 + rise,
                                    .initial_entropy = 1,
                                    .trajectories = 1,
                                    .budget = 8,
                                    .consecutive = consecutive,
                                    .uniform = (i + 0.5) / kDraws});
  return branches / static_cast<double>(kDraws);
}

TEST(Independent, StartsEveryTrajectoryFromThePrompt) {
  const auto policy = independent();
  EXPECT_EQ(policy->initial(8), 8);
  EXPECT_FALSE(policy->ever_branches());
  EXPECT_FALSE(policy->branch_here({.turn_entropy = 9, .trajectories = 1, .budget = 8, .uniform = 0}));
}

TEST(EntropyBranch, BranchesMoreWhereEntropyRose) {
  const auto policy = entropy_branch();
  EXPECT_NEAR(branch_probability(*policy, 0.3, 0), .56, 1e-4);
  EXPECT_NEAR(branch_probability(*policy, -0.3, 0), .44, 1e-4);
  EXPECT_NEAR(branch_probability(*policy, 9, 0), 1, 1e-4);
  EXPECT_NEAR(branch_probability(*policy, -9, 0), 0, 1e-4);
}

TEST(EntropyBranch, StopsAtTheBudget) {
  const auto policy = entropy_branch({.base = 1});
  EXPECT_EQ(policy->initial(4), 4);
  EXPECT_EQ(policy->initial(16), 8);
  EXPECT_FALSE(policy->branch_here({.trajectories = 8, .budget = 8}));
  EXPECT_TRUE(policy->branch_here({.trajectories = 7, .budget = 8}));
  EXPECT_FALSE(entropy_branch({.beam = 1})->ever_branches());
}

TEST(BalancedBranch, PublishedFormGivesThePublishedProbabilities) {
  const auto policy = balanced_branch(published_balanced_branch());
  EXPECT_NEAR(branch_probability(*policy, 0, 0), .5, 1e-4);
  EXPECT_NEAR(branch_probability(*policy, .3, 0), .56, 1e-4);
  EXPECT_NEAR(branch_probability(*policy, .3, 2), .50444, 1e-4);
  EXPECT_NEAR(branch_probability(*policy, -.3, 1), .41368, 1e-4);
  EXPECT_NEAR(branch_probability(*policy, 0, 10), 0, 1e-4);
}

TEST(BalancedBranch, PaperFormScalesTheProbabilityByTheStreak) {
  const auto policy = balanced_branch();
  for (double rise : {-0.5, 0.0, 0.4})
    for (int streak : {0, 1, 3, 7}) {
      const double expected = std::clamp((.5 + .2 * rise) * (1 - .2 * streak), 0.0, 1.0);
      EXPECT_NEAR(branch_probability(*policy, rise, streak), expected, 1e-4) << rise << ' ' << streak;
    }
}

TEST(BalancedBranch, WithoutPenaltyAndProbeIsEntropyBranch) {
  const auto balanced = balanced_branch({.penalty = 0, .probe = false});
  const auto entropy = entropy_branch();
  EXPECT_EQ(balanced->initial(16), entropy->initial(16));
  for (double rise : {-2.0, -0.3, 0.0, 0.3, 2.0})
    EXPECT_NEAR(branch_probability(*balanced, rise, 5), branch_probability(*entropy, rise, 5), 1e-4);
}

TEST(BalancedBudget, GivesThePublishedVectors) {
  const auto code = [](int budget, double root, double average) {
    return balanced_budget(budget, {.root = root, .tool_calls = {average}}, 0.5, BalancedForm::Code);
  };
  EXPECT_EQ(code(16, .5, .5), 9);
  EXPECT_EQ(code(16, 1, .2), 10);
  EXPECT_EQ(code(16, .2, 1), 7);
  EXPECT_EQ(code(16, 5, 0), 15);
  EXPECT_EQ(code(12, .5, .5), 7);
}

TEST(BalancedBudget, OfThePaperStaysWithinTheBudget) {
  for (double root : {0.0, 1.0, 50.0})
    for (double average : {0.0, 1.0, 50.0})
      for (int budget : {1, 2, 16}) {
        const int m = balanced_budget(budget, {.root = root, .tool_calls = {average}}, 0.2, BalancedForm::Paper);
        EXPECT_GE(m, 1);
        EXPECT_LE(m, budget);
      }
  EXPECT_EQ(balanced_budget(16, {.root = 3}, 0.2, BalancedForm::Paper), 8);
}

TEST(TurnEntropy, SumsTheFirstTokensOverTheLogOfTheVocabulary) {
  const std::vector<double> entropies = {1, 2, 4};
  EXPECT_DOUBLE_EQ(turn_entropy(entropies, 2, 100), 3 / std::log(100.0));
  EXPECT_EQ(turn_entropy({}, 2, 100), 0);
  const std::vector<std::vector<double>> candidates = {{std::log(.5), std::log(.25)}, {std::log(.5)}};
  EXPECT_DOUBLE_EQ(turn_entropy_of_candidates(candidates, 1, 8),
                   (.5 * std::log(2) + .25 * std::log(4)) / std::log(8.0));
}

TEST(TreeExpand, DividesTheBudgetsLeavesOverTheTrees) {
  const auto policy = tree_expand();
  EXPECT_EQ(policy->initial(6), 2);
  const auto plan = policy->expansion(6);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->leaves, (std::vector<int>{3, 3}));
  EXPECT_EQ(plan->rounds, 1);
  for (int budget = 1; budget < 40; ++budget) {
    const auto any = policy->expansion(budget);
    EXPECT_EQ(std::accumulate(any->leaves.begin(), any->leaves.end(), 0), budget);
    EXPECT_GE(1 + any->nodes * any->rounds, any->leaves.front());
    EXPECT_TRUE(any->rounds == 1 || 1 + any->nodes * (any->rounds - 1) < any->leaves.front());
  }
}

TEST(PickLeaves, TakesEachLeafEquallyOften) {
  RandomStream random(1);
  std::vector<int> taken(5, 0);
  for (int trial = 0; trial < 5000; ++trial)
    for (int leaf : pick_leaves(5, 3, random)) ++taken[leaf];
  EXPECT_EQ(std::accumulate(taken.begin(), taken.end(), 0), 15000);
  for (int count : taken) EXPECT_NEAR(count, 3000, 200);
}

}  // namespace
}  // namespace carnot
