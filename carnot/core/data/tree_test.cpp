#include "carnot/core/data/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/check.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A prompt token, `sampled` sampled ones, an observation token.
Turn turn_of(int parent, int sampled) {
  Turn turn{.parent = parent, .sampled_begin = 1, .sampled_end = 1 + sampled};
  for (int i = 0; i < sampled + 2; ++i) turn.tokens.push_back(i);
  extend_spans(turn.spans, SpanKind::Prompt, 1);
  extend_spans(turn.spans, SpanKind::Think, sampled);
  extend_spans(turn.spans, SpanKind::Observation, 1);
  return turn;
}

/// Turns 0 - 1 - 2, and 3 that branches off turn 0.
Tree forked_tree() {
  Tree tree{.turns = {turn_of(-1, 1), turn_of(0, 2), turn_of(1, 3), turn_of(0, 4)},
            .leaves = {{.turn = 2, .score = 1.0}, {.turn = 3, .parent = 0, .branch_turn = 1, .score = 0.5}}};
  tree.turns[0].penalty = -0.1;
  tree.turns[3].penalty = -0.2;
  return tree;
}

TEST(Tree, APathReadsFromTheRootToTheLeaf) {
  EXPECT_THAT(path(forked_tree(), 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(path(forked_tree(), 1), ElementsAre(0, 3));
}

TEST(Tree, APathOfALeafThatDoesNotExistIsABug) { EXPECT_THROW(path(forked_tree(), 2), CheckError); }

TEST(Tree, SharedTurnsPenaliseEveryTrajectoryThroughThem) {
  EXPECT_DOUBLE_EQ(penalised_score(forked_tree(), 0), 0.9);
  EXPECT_DOUBLE_EQ(penalised_score(forked_tree(), 1), 0.2);
}

TEST(Tree, SharedTurnsCountOnceAmongItsTokens) {
  const Tree tree = forked_tree();
  EXPECT_EQ(num_tokens(tree), 3 + 4 + 5 + 6);
  EXPECT_LT(num_tokens(tree), (3 + 4 + 5) + (3 + 6));
}

TEST(Tree, InfrastructureFailuresAndDroppedMembersDoNotCount) {
  EXPECT_TRUE((Leaf{.outcome = Outcome::ToolFailed}.is_included()));
  EXPECT_FALSE((Leaf{.outcome = Outcome::InfraFailed}.valid()));
  EXPECT_FALSE((Leaf{.outcome = Outcome::InfraFailed}.is_included()));
  EXPECT_TRUE((Leaf{.dropped = true}.valid()));
  EXPECT_FALSE((Leaf{.dropped = true}.is_included()));
}

TEST(Violations, AreAbsentFromAValidTree) { EXPECT_THAT(violations(forked_tree()), IsEmpty()); }

TEST(Violations, AreAbsentFromRandomTrees) {
  RandomStream random(1);
  for (int trial = 0; trial < 50; ++trial)
    for (const Group& group : testing::random_groups(random, {.columns = testing::all_columns()}))
      for (const Tree& tree : group.trees) EXPECT_THAT(violations(tree), IsEmpty()) << "trial " << trial;
}

TEST(Violations, NameAParentThatDoesNotComeFirst) {
  Tree tree = forked_tree();
  tree.turns[1].parent = 1;
  EXPECT_THAT(violations(tree), ElementsAre("turn 1: parent does not come before it"));
  tree.turns[1].parent = -2;
  EXPECT_THAT(violations(tree), ElementsAre("turn 1: parent does not come before it"));
}

TEST(Violations, NameASampledRangeOutsideTheTokens) {
  Tree tree = forked_tree();
  tree.turns[2].sampled_end = 6;
  EXPECT_THAT(violations(tree), ElementsAre("turn 2: sampled range is outside its tokens"));
  tree.turns[2].sampled_begin = 4;
  tree.turns[2].sampled_end = 3;
  EXPECT_THAT(violations(tree), ElementsAre("turn 2: sampled range is outside its tokens"));
}

TEST(Violations, NameSpansThatOverlapOrEndEarly) {
  Tree tree = forked_tree();
  tree.turns[0].spans[1].begin = 0;
  EXPECT_THAT(violations(tree), ElementsAre("turn 0: spans have a gap, an overlap or an empty span"));
  tree = forked_tree();
  tree.turns[0].spans.pop_back();
  EXPECT_THAT(violations(tree), ElementsAre("turn 0: spans do not cover the tokens"));
}

TEST(Violations, NameALeafThatEndsOnNoTurn) {
  Tree tree = forked_tree();
  tree.leaves[1].turn = 9;
  EXPECT_THAT(violations(tree), ElementsAre("leaf 1: ends on turn 9 of 4"));
}

TEST(Violations, NameALeafThatBranchedOffALaterOne) {
  Tree tree = forked_tree();
  tree.leaves[0].parent = 1;
  EXPECT_THAT(violations(tree), ElementsAre("leaf 0: branched off a leaf that comes after it"));
}

TEST(Violations, NameAColumnWithTooFewValues) {
  Tree tree = forked_tree();
  for (int t = 0; t < 4; ++t) tree.columns.edit(Column::Value, t, static_cast<int>(tree.turns[t].tokens.size()));
  tree.columns.edit(Column::Value, 2, 1);
  EXPECT_THAT(violations(tree), ElementsAre("turn 2: column value has 1 values for 5 tokens"));
}

TEST(Violations, NameAColumnThatMissesTheLastTurns) {
  Tree tree = forked_tree();
  tree.columns.edit(Column::Value, 0, 3);
  EXPECT_THAT(violations(tree), ElementsAre(HasSubstr("column value holds 1 of 4 turns")));
}

TEST(Columns, StartWithoutMeasurements) {
  Columns columns;
  EXPECT_FALSE(columns.has(Column::Value));
  EXPECT_THROW(columns.turn(Column::Value, 0), CheckError);
  EXPECT_TRUE(std::isnan(columns.edit(Column::Value, 1, 2)[1]));
  EXPECT_TRUE(columns.has(Column::Value));
  columns.clear(Column::Value);
  EXPECT_FALSE(columns.has(Column::Value));
}

TEST(Columns, KeepWhatWasMeasuredWhenATurnGrows) {
  Columns columns;
  columns.edit(Column::EntropyOld, 0, 2)[1] = 0.5;
  const auto& grown = columns.edit(Column::EntropyOld, 0, 3);
  EXPECT_EQ(grown[1], 0.5);
  EXPECT_TRUE(std::isnan(grown[2]));
}

TEST(Spans, JoinNeighboursOfOneKind) {
  std::vector<Span> spans;
  extend_spans(spans, SpanKind::Think, 2);
  extend_spans(spans, SpanKind::Think, 3);
  extend_spans(spans, SpanKind::Action, 0);
  extend_spans(spans, SpanKind::Observation, 1);
  EXPECT_THAT(spans, ElementsAre(Span{SpanKind::Think, 0, 5}, Span{SpanKind::Observation, 5, 6}));
}

TEST(Spans, AppendedTokensMoveTheirSpans) {
  SpannedTokens all{{1, 2}, {{SpanKind::Prompt, 0, 2}}};
  append(all, {{3, 4}, {{SpanKind::Prompt, 0, 1}, {SpanKind::Think, 1, 2}}});
  EXPECT_THAT(all.tokens, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(all.spans, ElementsAre(Span{SpanKind::Prompt, 0, 3}, Span{SpanKind::Think, 3, 4}));
}

}  // namespace
}  // namespace carnot
