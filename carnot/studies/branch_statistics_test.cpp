#include "carnot/studies/branch_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/random.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

TEST(BranchStatistics, CountsUncertainTurnsAndThoseBehindAnother) {
  const std::vector<std::vector<double>> entropies{{1, 5, 6, 2, 7}, {8}, {}, {9, 9, 1}};
  const Streaks found = streaks(entropies, 5);
  EXPECT_EQ(found.high, 6);         // 5 6 7, 8, 9 9
  EXPECT_EQ(found.consecutive, 2);  // 6, and the second 9
  EXPECT_EQ(found.behind_any, 4);   // 5 6 7 and the second 9
  EXPECT_DOUBLE_EQ(found.share(), 2.0 / 6);
  EXPECT_EQ(streaks(entropies, 100).share(), 0);
}

TEST(BranchStatistics, OfIndependentTurnsTheShareIsTheChanceOfTheTurnBefore) {
  RandomStream random(1);
  std::vector<std::vector<double>> entropies;
  for (int i = 0; i < 4000; ++i) {
    auto& one = entropies.emplace_back();
    for (int k = 0; k < 5; ++k) one.push_back(random.uniform());
  }
  const Streaks found = streaks(entropies, 0.7);
  EXPECT_NEAR(static_cast<double>(found.consecutive) / static_cast<double>(found.behind_any), 0.3, 0.03);
}

/// Root turn 0 of three leaves: 0 continues through 1, 2; leaf 1 leaves leaf 0 behind turn 0, leaf 2 leaves leaf 1.
Group branched_group() {
  Tree tree;
  for (const int parent : {-1, 0, 1, 0, 3}) tree.turns.push_back({.parent = parent, .turn_entropy = 0.5 + parent});
  tree.leaves = {{.turn = 2, .sibling = 0, .trajectory_id = "a"},
                 {.turn = 3, .sibling = 1, .trajectory_id = "b", .parent = 0, .branch_turn = 1},
                 {.turn = 4, .sibling = 2, .trajectory_id = "c", .parent = 1, .branch_turn = 2}};
  Tree chain{.turns = {{.parent = -1}}, .leaves = {{.turn = 0, .sibling = 3, .trajectory_id = "d"}}};
  return {.uid = "q", .trees = {tree, chain}};
}

TEST(BranchStatistics, CountsDistinctReceivers) {
  Group group = branched_group();
  EXPECT_EQ(branch_receivers(group).branches, 2);
  EXPECT_EQ(branch_receivers(group).receivers, 2);
  group.trees[0].leaves[2] = {.turn = 4, .sibling = 2, .trajectory_id = "c", .parent = 0, .branch_turn = 1};
  EXPECT_EQ(branch_receivers(group).receivers, 1);
}

TEST(BranchStatistics, AProbeIsTheRootAndTheToolCallsOfATrajectory) {
  const Group group = branched_group();
  const auto probe = entropy_probe(trajectory(group, 0, 0, 0));
  ASSERT_TRUE(probe.has_value());
  EXPECT_EQ(probe->root, -0.5);
  EXPECT_EQ(probe->tool_calls, (std::vector<double>{0.5, 1.5}));
  EXPECT_EQ(tool_turn_entropies(trajectory(group, 0, 0, 2)), (std::vector<double>{0.5, 3.5}));
}

/// By moments about zero, root turn by root turn.
std::optional<double> slow_spread(const Group& group) {
  double n = 0, h = 0, hh = 0, s = 0, ss = 0;
  for (const Tree& tree : group.trees)
    for (std::size_t node = 0; node < tree.turns.size(); ++node) {
      const Turn& turn = tree.turns[node];
      if (turn.parent >= 0 || turn.num_sampled() == 0) continue;
      bool counts = false;
      for (const Leaf& leaf : tree.leaves) {
        int at = leaf.turn;
        while (tree.turns[at].parent >= 0) at = tree.turns[at].parent;
        counts = counts || (at == static_cast<int>(node) && leaf.is_included());
      }
      if (!counts) continue;
      double entropy = 0, surprisal = 0;
      for (int t = turn.sampled_begin; t < turn.sampled_end; ++t) {
        entropy += tree.columns.turn(Column::EntropyRollout, static_cast<int>(node))[t];
        surprisal -= tree.columns.turn(Column::LogProbRollout, static_cast<int>(node))[t];
      }
      n += 1;
      h += entropy, hh += entropy * entropy;
      s += surprisal, ss += surprisal * surprisal;
    }
  if (n < 2) return std::nullopt;
  return std::sqrt((hh / n - h * h / n / n) / (ss / n - s * s / n / n));
}

TEST(BranchStatistics, TheSpreadOfFirstResponsesEqualsItsDefinitionOnRandomGroups) {
  RandomStream random(3);
  const auto groups = testing::random_groups(random, {.groups = 200, .columns = testing::all_columns()});
  int compared = 0;
  for (const Group& group : groups) {
    const auto spread = first_response_spread(group), slow = slow_spread(group);
    ASSERT_EQ(spread.has_value(), slow.has_value()) << group.uid;
    if (!spread) continue;
    EXPECT_NEAR(*spread, *slow, 1e-9 * (1 + *slow));
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace carnot
