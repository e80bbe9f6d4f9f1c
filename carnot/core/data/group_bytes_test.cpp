#include "carnot/core/data/group_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/data/rollout_file.h"
#include "testing/random_groups.h"
#include "testing/trials.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

std::string as_rows(const std::vector<Group>& groups) {
  return rollout_rows(groups, {}, [](std::span<const TokenId> tokens) { return std::to_string(tokens.size()); });
}

/// A group in which no member has its default value.
Group unusual_group() {
  Turn turn{.parent = -1,
            .context = Context::Fresh,
            .tokens = {7, 8, 9},
            .sampled_begin = 1,
            .sampled_end = 2,
            .spans = {{SpanKind::Prompt, 0, 1}, {SpanKind::Action, 1, 3}},
            .reward = -0.0,
            .penalty = -0.25,
            .valid_action = false,
            .info_gain = 0.5,
            .turn_entropy = std::numeric_limits<double>::denorm_min(),
            .anchor = std::string("a\0b", 3),
            .tool = "search",
            .status = "timeout",
            .latency_ms = 1.5,
            .policy_version = 3};
  Leaf leaf{.turn = 0,
            .sibling = 4,
            .trajectory_id = "t",
            .parent = -1,
            .branch_turn = 2,
            .outcome = Outcome::OutOfTokens,
            .score = 0.1,
            .success = true,
            .dropped = true,
            .measures = {{"format", 1.0}, {"exact_match", 0.0}},
            .answer = "forty-two"};
  Group group{.uid = "g",
              .task_index = 11,
              .seed = 12,
              .step = 13,
              .ground_truth = {"x", ""},
              .info = {{"hops", "2"}},
              .trees = {{.turns = {turn}, .leaves = {leaf}}},
              .query_baseline = -3.5};
  std::vector<double>& values = group.trees[0].columns.edit(Column::Value, 0, 3);
  values[1] = -0.0;
  return group;
}

TEST(GroupBytes, KeepEveryMember) {
  const auto groups = groups_of_bytes(bytes_of_groups({unusual_group()}));
  ASSERT_TRUE(groups) << groups.error().message;
  const Group expected = unusual_group();
  const Group& group = groups->at(0);
  EXPECT_EQ(group.uid, expected.uid);
  EXPECT_EQ(group.task_index, expected.task_index);
  EXPECT_EQ(group.seed, expected.seed);
  EXPECT_EQ(group.step, expected.step);
  EXPECT_EQ(group.ground_truth, expected.ground_truth);
  EXPECT_EQ(group.info, expected.info);
  EXPECT_EQ(group.query_baseline, expected.query_baseline);
  const Turn& turn = group.trees.at(0).turns.at(0);
  const Turn& expected_turn = expected.trees[0].turns[0];
  EXPECT_EQ(turn.parent, -1);
  EXPECT_EQ(turn.context, Context::Fresh);
  EXPECT_EQ(turn.tokens, expected_turn.tokens);
  EXPECT_EQ(turn.sampled_begin, 1);
  EXPECT_EQ(turn.sampled_end, 2);
  EXPECT_EQ(turn.spans, expected_turn.spans);
  EXPECT_TRUE(turn.reward == 0 && std::signbit(turn.reward));
  EXPECT_EQ(turn.penalty, -0.25);
  EXPECT_FALSE(turn.valid_action);
  EXPECT_EQ(turn.info_gain, 0.5);
  EXPECT_EQ(turn.turn_entropy, expected_turn.turn_entropy);
  EXPECT_EQ(turn.anchor, expected_turn.anchor);
  EXPECT_EQ(turn.tool, "search");
  EXPECT_EQ(turn.status, "timeout");
  EXPECT_EQ(turn.latency_ms, 1.5);
  EXPECT_EQ(turn.policy_version, 3);
  const Leaf& leaf = group.trees[0].leaves.at(0);
  const Leaf& expected_leaf = expected.trees[0].leaves[0];
  EXPECT_EQ(leaf.turn, 0);
  EXPECT_EQ(leaf.sibling, 4);
  EXPECT_EQ(leaf.trajectory_id, "t");
  EXPECT_EQ(leaf.parent, -1);
  EXPECT_EQ(leaf.branch_turn, 2);
  EXPECT_EQ(leaf.outcome, Outcome::OutOfTokens);
  EXPECT_EQ(leaf.score, 0.1);
  EXPECT_TRUE(leaf.success);
  EXPECT_TRUE(leaf.dropped);
  EXPECT_EQ(leaf.measures, expected_leaf.measures);
  EXPECT_EQ(leaf.answer, "forty-two");
  const Columns& columns = group.trees[0].columns;
  EXPECT_FALSE(columns.has(Column::Reward));
  ASSERT_TRUE(columns.has(Column::Value));
  const std::vector<double>& values = columns.turn(Column::Value, 0);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[2]));
  EXPECT_TRUE(values[1] == 0 && std::signbit(values[1]));
}

TEST(GroupBytes, OfRandomGroupsGiveTheSameRows) {
  RandomStream random(5);
  for (int trial = 0; trial < testing::trials(50); ++trial) {
    const auto groups = testing::random_groups(random, {.columns = testing::all_columns()});
    const std::string bytes = bytes_of_groups(groups);
    const auto read = groups_of_bytes(bytes);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(as_rows(*read), as_rows(groups));
    EXPECT_EQ(bytes_of_groups(*read), bytes);
  }
}

TEST(GroupBytes, ThatEndTooEarlyOrTooLateAreRefused) {
  RandomStream random(6);
  const std::string bytes = bytes_of_groups(testing::random_groups(random, {.columns = testing::all_columns()}));
  for (std::size_t size = 0; size < bytes.size(); size += 1 + random.below(testing::kSanitized ? 70 : 7))
    EXPECT_FALSE(groups_of_bytes(std::string_view(bytes).substr(0, size)));
  EXPECT_FALSE(groups_of_bytes(bytes + "x"));
}

TEST(GroupBytes, WhoseTreesBreakAnInvariantAreRefused) {
  Group group = unusual_group();
  group.trees[0].leaves[0].turn = 5;
  const auto groups = groups_of_bytes(bytes_of_groups({group}));
  ASSERT_FALSE(groups);
  EXPECT_THAT(groups.error().message, HasSubstr("group g: leaf 0: ends on turn 5 of 1"));
}

TEST(ByteReader, RefusesASizeThatIsLargerThanTheRest) {
  ByteWriter writer;
  writer.add(std::uint64_t{1} << 62);
  writer.add(1.0);
  const std::string bytes = writer.take();
  ByteReader reader(bytes);
  std::vector<double> values;
  reader.get(values);
  EXPECT_FALSE(reader.ok());
  EXPECT_TRUE(values.empty());
  double next = 1;
  reader.get(next);
  EXPECT_EQ(next, 0);
}

}  // namespace
}  // namespace carnot
