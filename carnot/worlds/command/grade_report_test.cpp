#include "carnot/worlds/command/grade_report.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

/// A group of trajectories of one sampled token each, with these scores; 1 and above succeed.
Group group_of(const std::string& uid, const std::vector<double>& scores) {
  Group group{.uid = uid};
  for (std::size_t i = 0; i < scores.size(); ++i) {
    Tree tree;
    tree.turns.push_back({.tokens = {1, 2}, .sampled_begin = 1, .sampled_end = 2, .reward = scores[i]});
    tree.leaves.push_back(
        {.turn = 0, .trajectory_id = uid + "." + std::to_string(i), .score = scores[i], .success = scores[i] >= 1});
    group.trees.push_back(tree);
  }
  return group;
}

TEST(GradeReport, ComparesScoresSuccessAndSpread) {
  const std::vector<Group> old{group_of("a", {0, 0}), group_of("b", {0, 1}), group_of("c", {1, 0})};
  const std::vector<Group> now{group_of("a", {0, 1}), group_of("b", {1, 1}), group_of("c", {0.5, 0})};
  const std::vector<std::string> responses{"r0", "r1", "r2\n", "r3", "r4", "r5"};
  EXPECT_EQ(grade_report(old, now, responses),
            "                        old         new\n"
            "mean score              0.3333      0.5833\n"
            "success                 33.3 %      50.0 %\n"
            "groups with spread      2 of 3      2 of 3\n"
            "\n"
            "Success: 1 in both, 1 only old, 2 only new, of 6 trajectories\n"
            "Groups that gain spread (1): a\n"
            "Groups that lose spread (1): b\n"
            "3 scores change; the most:\n"
            "  a.1: 0 -> 1  r1\n"
            "  b.0: 0 -> 1  r2\\n\n"
            "  c.0: 1 -> 0.5  r4\n");
}

TEST(GradeReport, LeavesOutWhatCountsUnderOneRewardAlone) {
  const std::vector<Group> old{group_of("a", {0, 0})};
  std::vector<Group> now{group_of("a", {0, 1})};
  now[0].trees[1].leaves[0].outcome = Outcome::InfraFailed;
  const std::string report = grade_report(old, now, std::vector<std::string>{"r0", "r1"});
  EXPECT_NE(report.find("1 trajectories lack one of the scores"), std::string::npos) << report;
  EXPECT_NE(report.find("No score changes.\n"), std::string::npos) << report;
}

}  // namespace
}  // namespace carnot
