#include "carnot/core/alarm/example.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

/// Two turns of two tokens: one that it was given, one that was sampled.
Group group_of(Outcome outcome, double score) {
  Tree tree;
  for (int k = 0; k < 2; ++k) {
    Turn& turn = tree.turns.emplace_back();
    turn.parent = k - 1;
    turn.tokens = {2 * k, 2 * k + 1};
    turn.sampled_begin = 1;
    turn.sampled_end = 2;
  }
  tree.leaves.push_back({.turn = 1, .outcome = outcome, .score = score});
  return {.trees = {tree}};
}

std::string decode(std::span<const TokenId> tokens) {
  std::string text;
  for (const TokenId token : tokens) text += "<" + std::to_string(token) + ">\n";
  return text;
}

std::string example_of(ExampleOf what, const std::vector<Group>& groups) {
  return example(what, trajectories(groups), decode);
}

TEST(AlarmExamples, AreTheFirstTrajectoryThatShowsIt) {
  std::vector<Group> groups{group_of(Outcome::InfraFailed, 0), group_of(Outcome::Finished, 0.5),
                            group_of(Outcome::OutOfTokens, -1)};
  EXPECT_EQ(example_of(ExampleOf::None, groups), "");
  EXPECT_EQ(example_of(ExampleOf::AnyTrajectory, groups), "score 0.5, turn 2 of 2, response: <3>\\n");
  EXPECT_EQ(example_of(ExampleOf::TruncatedTrajectory, groups), "score -1, turn 2 of 2, response: <3>\\n");
  EXPECT_EQ(example_of(ExampleOf::InvalidTurn, groups), "");
  groups[2].trees[0].turns[0].valid_action = false;
  EXPECT_EQ(example_of(ExampleOf::InvalidTurn, groups), "score -1, turn 1 of 2, response: <1>\\n");
  groups[1].trees[0].leaves[0].measures["format"] = 0;
  EXPECT_EQ(example_of(ExampleOf::InvalidTurn, groups), "score 0.5, turn 2 of 2, response: <3>\\n");
}

TEST(AlarmExamples, OfToolCallsNameTheToolAndItsStatus) {
  std::vector<Group> groups{group_of(Outcome::Finished, 0)};
  Turn& turn = groups[0].trees[0].turns[0];
  turn.tool = "search";
  for (const char* fine : {"ok", "empty", ""}) {
    turn.status = fine;
    EXPECT_EQ(example_of(ExampleOf::FailedToolCall, groups), "") << fine;
  }
  turn.status = "timeout";
  EXPECT_EQ(example_of(ExampleOf::FailedToolCall, groups),
            "score 0, turn 1 of 2, tool search (timeout), response: <1>\\n");
}

TEST(AlarmExamples, ShowTheEndOfALongResponse) {
  const std::vector<Group> groups{group_of(Outcome::Finished, 0)};
  const auto text = example(ExampleOf::AnyTrajectory, trajectories(groups), [](std::span<const TokenId>) {
    return std::string(1000, 'a') + std::string(299, 'b') + "\xC3\xA9";
  });
  EXPECT_EQ(text, "score 0, turn 2 of 2, response: ..." + std::string(298, 'b') + "\xC3\xA9");
}

}  // namespace
}  // namespace carnot
