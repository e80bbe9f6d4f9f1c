#include "carnot/core/train/control_reward.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

Group group_of(const std::vector<std::pair<Outcome, bool>>& ends) {
  Group group{.task_index = 5, .step = 2};
  for (const auto& [outcome, valid_action] : ends) {
    Tree tree;
    tree.turns = {{.reward = 0.25, .penalty = -0.1}, {.parent = 0, .reward = 2, .valid_action = valid_action}};
    tree.leaves = {{.turn = 1,
                    .sibling = static_cast<int>(group.trees.size()),
                    .outcome = outcome,
                    .score = 2.25,
                    .success = outcome == Outcome::Finished}};
    group.trees.push_back(std::move(tree));
  }
  return group;
}

double score(const Group& group, std::size_t tree) { return group.trees[tree].leaves[0].score; }

TEST(ControlReward, OfFormatPaysForTheFormAlone) {
  std::vector<Group> groups{group_of({{Outcome::Finished, true},
                                      {Outcome::Finished, false},
                                      {Outcome::Unparsable, true},
                                      {Outcome::OutOfTokens, true}})};
  replace_rewards("format", 1, groups);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(score(groups[0], i), i == 0 ? 1 : 0);
    EXPECT_EQ(groups[0].trees[i].turns[0].reward, 0);
    EXPECT_EQ(groups[0].trees[i].turns[0].penalty, 0);
    EXPECT_EQ(groups[0].trees[i].turns[1].reward, score(groups[0], i)) << "the score is the sum of the rewards";
  }
  EXPECT_TRUE(groups[0].trees[1].leaves[0].success);
}

TEST(ControlReward, ThatIsRandomDependsOnTheKeyAlone) {
  int ones = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::vector<Group> once{group_of({{Outcome::Finished, true}, {Outcome::OutOfTokens, false}})};
    std::vector<Group> again{group_of({{Outcome::Unparsable, false}, {Outcome::Finished, true}})};
    replace_rewards("random", seed, once);
    replace_rewards("random", seed, again);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(score(once[0], i), score(again[0], i));
      ones += score(once[0], i) == 1;
    }
  }
  EXPECT_GT(ones, 430);
  EXPECT_LT(ones, 570);
}

TEST(ControlReward, LeavesOutWhatTheInfrastructureLost) {
  std::vector<Group> groups{group_of({{Outcome::InfraFailed, true}})};
  replace_rewards("random", 1, groups);
  EXPECT_EQ(score(groups[0], 0), 0);
  EXPECT_EQ(groups[0].trees[0].turns[1].reward, 0);
}

}  // namespace
}  // namespace carnot
