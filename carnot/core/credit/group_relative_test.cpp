#include "carnot/core/credit/group_relative.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/group_advantage.h"
#include "testing/absent_members.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using ::testing::IsEmpty;

CreditTable credit_of(const GroupRelativeOptions& options, std::span<const Trajectory> all) {
  return run_credit(std::vector{group_relative(options)}, all);
}

/// Rewards of the included members of one group, and which of them is trajectory `self`.
struct Peers {
  std::vector<double> rewards{};
  std::size_t self = 0;
};

Peers peers_of(std::span<const Trajectory> all, std::size_t self) {
  Peers peers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].group_index != all[self].group_index || !all[i].leaf().is_included()) continue;
    if (i == self) peers.self = peers.rewards.size();
    peers.rewards.push_back(all[i].penalised_score());
  }
  return peers;
}

TEST(GroupRelative, EqualsItsDefinitionOnRandomGroups) {
  RandomStream random(3);
  int compared = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const auto groups = testing::random_groups(random, {.groups = 3, .dropped_share = 0.2});
    const auto all = trajectories(groups);
    const bool divide = trial % 2 == 0;
    const CreditTable table = credit_of({.normalisation = {.divide_by_std = divide}}, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].leaf().is_included()) continue;
      const Peers peers = peers_of(all, i);
      const double expected = reference::group_relative(peers.rewards, peers.self, divide);
      const auto sampled = all[i].sampled();
      for (std::size_t t = 0; t < sampled.size(); ++t) {
        ASSERT_NEAR(table[i].advantage[t], sampled[t] ? expected : 0, 1e-9) << "trial " << trial;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100000);
}

TEST(GroupRelative, IsUnmovedByMembersThatDoNotCount) {
  RandomStream random(4);
  int absent = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto groups = testing::random_groups(random, {.invalid_share = 0.3, .dropped_share = 0.3});
    absent += testing::absent_members(groups);
    for (Statistics statistics : {Statistics::Trajectories, Statistics::Rows, Statistics::FirstRows})
      ASSERT_THAT(testing::changes_by_absent_members(
                      groups, [&](auto all) { return credit_of({.statistics = statistics}, all); }),
                  IsEmpty());
  }
  EXPECT_GT(absent, 500);
}

TEST(GroupRelative, CountsRowsIfAsked) {
  // Two trajectories of one and of three turns: 1 and 0, the second with a penalty on its last turn.
  Group group;
  for (int turns : {1, 3}) {
    Tree tree;
    for (int k = 0; k < turns; ++k)
      tree.turns.push_back({.parent = k - 1,
                            .tokens = {7},
                            .sampled_begin = 0,
                            .sampled_end = 1,
                            .spans = {{SpanKind::Action, 0, 1}},
                            .penalty = k == 2 ? -0.1 : 0.0});
    tree.leaves.push_back({.turn = turns - 1, .score = turns == 1 ? 1.0 : 0.0});
    group.trees.push_back(tree);
  }
  const std::vector<Group> groups = {group};
  const auto all = trajectories(groups);
  const GroupRelativeOptions rows{.normalisation = {.divide_by_std = false}, .statistics = Statistics::Rows};
  const CreditTable table = credit_of(rows, all);
  const double mean = (1 + 0 + 0 - 0.1) / 4;
  EXPECT_DOUBLE_EQ(table[0].advantage[0], 1 - mean);
  EXPECT_DOUBLE_EQ(table[1].advantage[0], 0 - mean);
  EXPECT_DOUBLE_EQ(table[1].advantage[2], -0.1 - mean);
}

}  // namespace
}  // namespace carnot
