#include "carnot/core/data/trajectory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "carnot/core/data/credit_table.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::NanSensitiveDoubleEq;

/// Two trajectories that share turn 0: tokens 1 2 3 | 4 5 and 1 2 3 | 6.
Group small_group() {
  const Turn first{.tokens = {1, 2, 3},
                   .sampled_begin = 1,
                   .sampled_end = 3,
                   .spans = {{SpanKind::Prompt, 0, 1}, {SpanKind::Think, 1, 3}}};
  const Turn second{.parent = 0,
                    .tokens = {4, 5},
                    .sampled_begin = 0,
                    .sampled_end = 1,
                    .spans = {{SpanKind::Action, 0, 1}, {SpanKind::Observation, 1, 2}}};
  const Turn third{
      .parent = 0, .tokens = {6}, .sampled_begin = 0, .sampled_end = 1, .spans = {{SpanKind::Action, 0, 1}}};
  Tree tree{.turns = {first, second, third}, .leaves = {{.turn = 1}, {.turn = 2, .parent = 0, .branch_turn = 1}}};
  tree.columns.edit(Column::Value, 0, 3) = {0.1, 0.2, 0.3};
  tree.columns.edit(Column::Value, 1, 2) = {0.4, 0.5};
  tree.columns.edit(Column::Value, 2, 1) = {0.6};
  return {.uid = "task", .trees = {tree}};
}

TEST(Trajectory, ReadsItsTurnsTokenByToken) {
  const Group group = small_group();
  const Trajectory left = trajectory(group, 0, 0, 0);
  EXPECT_THAT(left.tokens(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(left.kinds(),
              ElementsAre(SpanKind::Prompt, SpanKind::Think, SpanKind::Think, SpanKind::Action, SpanKind::Observation));
  EXPECT_THAT(left.sampled(), ElementsAre(false, true, true, true, false));
  EXPECT_EQ(left.num_sampled(), 3);
  EXPECT_EQ(left.num_tokens(), 5);
  EXPECT_EQ(left.sampled_begin(1), 3);
  EXPECT_EQ(left.sampled_end(1), 4);
}

TEST(Trajectory, SharesTheColumnsOfSharedTurns) {
  const Group group = small_group();
  EXPECT_THAT(trajectory(group, 0, 0, 0).column(Column::Value), ElementsAre(0.1, 0.2, 0.3, 0.4, 0.5));
  EXPECT_THAT(trajectory(group, 0, 0, 1).column(Column::Value), ElementsAre(0.1, 0.2, 0.3, 0.6));
}

TEST(Trajectories, AreNumberedGroupByGroupTreeByTreeLeafByLeaf) {
  RandomStream random(2);
  const auto groups = testing::random_groups(random, {.groups = 10});
  std::size_t i = 0;
  const auto all = trajectories(groups);
  for (const Group& group : groups)
    for (const Tree& tree : group.trees)
      for (const Leaf& leaf : tree.leaves) {
        ASSERT_LT(i, all.size());
        EXPECT_EQ(&all[i].leaf(), &leaf);
        EXPECT_EQ(all[i].group, &group);
        ++i;
      }
  EXPECT_EQ(i, all.size());
}

TEST(Trajectories, CountAsManySampledTokensAsTheirMaskSays) {
  RandomStream random(3);
  const auto groups = testing::random_groups(random, {.groups = 20});
  for (const Trajectory& one : trajectories(groups)) {
    const auto mask = one.sampled();
    EXPECT_EQ(one.num_sampled(), std::count(mask.begin(), mask.end(), true));
    EXPECT_EQ(one.tokens().size(), mask.size());
    EXPECT_EQ(one.kinds().size(), mask.size());
  }
}

TEST(CreditTable, StartsWithNoAdvantageFullWeightAndNoValueTarget) {
  const std::vector<Group> groups{small_group()};
  const CreditTable table = fresh_credit(trajectories(groups));
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0].advantage.size(), 5u);
  EXPECT_THAT(table[1].advantage, Each(0.0));
  EXPECT_THAT(table[1].weight, Each(1.0));
  EXPECT_THAT(table[1].clip_scale, Each(1.0));
  EXPECT_THAT(table[1].value_target, Each(NanSensitiveDoubleEq(std::nan(""))));
}

}  // namespace
}  // namespace carnot
