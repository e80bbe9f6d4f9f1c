#include "carnot/core/credit/filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "testing/absent_members.h"
#include "testing/field_settings.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

Group group_of(const std::vector<double>& scores) {
  Group group;
  for (double score : scores) {
    Tree tree;
    tree.turns.push_back({.tokens = {1}, .sampled_end = 1, .spans = {{SpanKind::Action, 0, 1}}});
    tree.leaves.push_back({.turn = 0, .score = score});
    group.trees.push_back(tree);
  }
  return group;
}

TEST(DropZeroVariance, KeepsGroupsWithASignalAndGroupsOfOne) {
  const std::vector<Group> groups = {group_of({1, 1, 1}), group_of({1, 0, 1}), group_of({0.7}),
                                     group_of({0.1, 0.1, 0.1, 0.1, 0.1, 0.1})};
  EXPECT_EQ(drop_zero_variance(0).keep(groups), (std::vector<bool>{false, true, true, false}));
}

TEST(DropZeroVariance, ReadsRawScores) {
  Group group = group_of({1, 1});
  group.trees[0].turns[0].penalty = -0.1;
  EXPECT_EQ(drop_zero_variance(0).keep(std::vector{group}), std::vector<bool>{false});
}

TEST(DropZeroVariance, IgnoresMembersLostToInfrastructureFailures) {
  Group group = group_of({1, 1, 0});
  group.trees[2].leaves[0].outcome = Outcome::InfraFailed;
  EXPECT_EQ(drop_zero_variance(0).keep(std::vector{group}), std::vector<bool>{false});
}

TEST(KeepMostVaried, KeepsTheShareWithTheLargestDeviationInOrder) {
  const std::vector<Group> groups = {group_of({0, 1}), group_of({0, 3}), group_of({0, 2}), group_of({0, 0})};
  EXPECT_EQ(keep_most_varied(0.5).keep(groups), (std::vector<bool>{false, true, true, false}));
}

TEST(KeepMostVaried, KeepsAtLeastOneAndGivesTiesToTheEarlier) {
  const std::vector<Group> groups = {group_of({0, 0}), group_of({0, 1}), group_of({1, 0})};
  EXPECT_EQ(keep_most_varied(0.1).keep(groups), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(keep_most_varied(1).keep(groups), (std::vector<bool>{true, true, true}));
}

/// By definition: a group is kept if fewer than `wanted` groups come before it.
bool stays(const std::vector<Group>& groups, std::size_t self, double share) {
  const auto deviation = [](const Group& group) {
    std::vector<double> scores;
    for (const Tree& tree : group.trees)
      for (std::size_t i = 0; i < tree.leaves.size(); ++i)
        if (tree.leaves[i].valid()) scores.push_back(penalised_score(tree, static_cast<int>(i)));
    double sum = 0, squares = 0;
    for (double x : scores) sum += x;
    for (double x : scores) squares += std::pow(x - sum / static_cast<double>(scores.size()), 2);
    return scores.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(scores.size() - 1));
  };
  double before = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const double mine = deviation(groups[self]), other = deviation(groups[g]);
    if (other > mine || (other == mine && g < self)) ++before;
  }
  return before < std::max(1.0, std::floor(share * static_cast<double>(groups.size())));
}

TEST(KeepMostVaried, EqualsItsDefinitionOnRandomGroups) {
  RandomStream random(10);
  for (int trial = 0; trial < 300; ++trial) {
    const auto groups = testing::random_groups(random, {.groups = 1 + static_cast<int>(random.below(9))});
    const double share = 1 - random.uniform();
    const std::vector<bool> keep = keep_most_varied(share).keep(groups);
    for (std::size_t g = 0; g < groups.size(); ++g) ASSERT_EQ(keep[g], stays(groups, g, share)) << "trial " << trial;
  }
}

TEST(EveryFilter, DecidesAsIfFailedMembersDidNotExist) {
  RandomStream random(11);
  int absent = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const auto groups = testing::random_groups(random, {.invalid_share = 0.4});
    const auto present = testing::without_absent_members(groups);
    absent += testing::absent_members(groups);
    for (const GroupFilter& filter : {drop_zero_variance(0), keep_most_varied(0.5), keep_least_varied(0.5)})
      EXPECT_EQ(filter.keep(groups), filter.keep(present)) << filter.name;
  }
  EXPECT_GT(absent, 300);
}

TEST(GroupFilter, IsChosenByNameWithItsOptions) {
  const std::vector<Group> groups = {group_of({0, 1}), group_of({0, 3}), group_of({0, 2}), group_of({0, 0})};
  testing::FieldSettings settings({{"name", "keep_most_varied"}, {"keep_share", "0.5"}});
  GroupFilter filter;
  filter.fields(settings);
  EXPECT_EQ(filter.keep(groups), keep_most_varied(0.5).keep(groups));
  for (const FilterEntry& entry : filters()) {
    filter.name = entry.name;
    EXPECT_EQ(filter.keep(groups).size(), 4u);
    EXPECT_FALSE(entry.summary.empty());
  }
}

TEST(GroupFilter, SaysWhichOfItsKeysItsNameLeavesUnread) {
  EXPECT_TRUE(GroupFilter{}.unread_keys().contains("max_refills"));
  EXPECT_TRUE(drop_zero_variance(2).unread_keys().contains("keep_share"));
  EXPECT_FALSE(drop_zero_variance(2).unread_keys().contains("max_refills"));
  EXPECT_FALSE(keep_most_varied(0.5).unread_keys().contains("keep_share"));
}

TEST(ApplyFilter, DropsTheLeavesOfTheOtherGroups) {
  std::vector<Group> groups = {group_of({1, 1}), group_of({1, 0})};
  EXPECT_EQ(apply_filter(drop_zero_variance(0), groups), 1);
  for (const Tree& tree : groups[0].trees) EXPECT_TRUE(tree.leaves[0].dropped);
  for (const Tree& tree : groups[1].trees) EXPECT_FALSE(tree.leaves[0].dropped);
}

TEST(ApplyFilter, WithoutAFilterKeepsAll) {
  std::vector<Group> groups = {group_of({1, 1}), group_of({1, 0})};
  EXPECT_EQ(apply_filter({}, groups), 2);
  EXPECT_FALSE(groups[0].trees[0].leaves[0].dropped);
}

}  // namespace
}  // namespace carnot
