#include "carnot/serving/imported/imported_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/file.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/rows/demonstration.h"
#include "carnot/core/text/chat_families.h"
#include "testing/paths.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::small_tokenizer;

const ChatFamily& chat() {
  static const std::unique_ptr<ChatFamily> family = make_chat_family("chatml", small_tokenizer()).value();
  return *family;
}

ImportedGroups import(const std::string& text, const RolloutImportOptions& options = {}) {
  auto read = parse_rollouts(text, "rows.jsonl", "");
  EXPECT_TRUE(read.ok()) << (read ? "" : read.error().message);
  auto made = import_groups(*read, chat(), options);
  EXPECT_TRUE(made.ok()) << (made ? "" : made.error().message);
  for (const Group& group : made->groups)
    for (const Tree& tree : group.trees) EXPECT_THAT(violations(tree), ::testing::IsEmpty());
  return std::move(made).value();
}

const std::string kTwoTurns =
    R"({"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "look"},
  {"role": "assistant", "content": "<think>left</think> at"}, {"role": "user", "content": "heard"},
  {"role": "assistant", "content": "right"}], "reward": 1, "answer": "right"})";

std::string one_line(std::string text) {
  std::erase(text, '\n');
  return text;
}

TEST(ImportedGroups, OfAConversationAreItsTokensTurnByTurn) {
  const auto made = import(one_line(kTwoTurns));
  const Trajectory one = trajectories(made.groups).at(0);
  const auto read = parse_rollouts(one_line(kTwoTurns), "", "");
  const Demonstration whole = render_demonstration(chat(), *read->rollouts[0].conversation).value();
  EXPECT_EQ(one.tokens(), whole.tokens);
  EXPECT_EQ(one.sampled(), whole.is_said);
  ASSERT_EQ(one.num_turns(), 2);
  EXPECT_EQ(one.turn(0).reward, 0);
  EXPECT_EQ(one.turn(1).reward, 1);
  EXPECT_TRUE(one.leaf().success);
  EXPECT_THAT(made.groups[0].ground_truth, ElementsAre("right"));
  std::string thought, action, observed;
  for (std::size_t t = 0; t < whole.tokens.size(); ++t) {
    const std::string text(small_tokenizer().bytes_of(whole.tokens[t]));
    const SpanKind kind = one.kinds()[t];
    (kind == SpanKind::Think ? thought : kind == SpanKind::Action ? action : observed) += text;
  }
  EXPECT_EQ(thought, "<think>left</think>");
  EXPECT_EQ(action, " at<|im_end|>right<|im_end|>");
  EXPECT_THAT(observed, HasSubstr("heard"));
}

TEST(ImportedGroups, AreThoseOfATaskAndStep) {
  std::string rows;
  for (const auto& [step, prompt] : {std::pair{0, "a"}, std::pair{0, "b"}, std::pair{0, "a"}, std::pair{1, "a"}})
    rows += R"({"input": ")" + std::string(prompt) + R"(", "output": "c", "score": 0.5, "step": )" +
            std::to_string(step) + "}\n";
  const auto made = import(rows);
  ASSERT_EQ(made.groups.size(), 3u);
  EXPECT_EQ(made.groups[0].trees.size(), 2u);
  EXPECT_EQ(made.groups[0].step, 1) << "steps count from 1 here";
  EXPECT_EQ(made.groups[2].step, 2);
  EXPECT_EQ(made.groups[2].uid, made.groups[0].uid);
  EXPECT_FALSE(made.groups[0].trees[0].leaves[0].success);
  EXPECT_TRUE(import(rows, {.success_score = 0.5}).groups[0].trees[0].leaves[0].success);
}

TEST(ImportedGroups, KeepLogProbabilitiesOfAsManyTokens) {
  const auto made = import(R"({"prompt_ids": [5, 6], "completion_ids": [7, 8, 9, 10], "completion_mask": [1, 0, 1, 1],)"
                           R"( "completion_logprobs": [-1, 0, -2, -3], "reward": 1})");
  EXPECT_EQ(made.log_probs, 1);
  const Trajectory one = trajectories(made.groups).at(0);
  const std::vector<double> column = one.column(Column::LogProbRollout);
  EXPECT_EQ(column[2], -1);
  EXPECT_EQ(column[4], -2);
  EXPECT_EQ(column[5], -3);
  EXPECT_EQ(one.num_turns(), 2);
  const auto other = import(R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b",)"
                            R"( "logprobs": [-1, -1, -1, -1, -1, -1]}], "reward": 1})");
  EXPECT_EQ(other.log_probs, 0);
  EXPECT_EQ(other.not_aligned, 1);
}

/// What the policy said in each turn of each trajectory, in order, and the scores.
struct Said {
  std::vector<std::string> texts{};
  std::vector<double> scores{};
  std::vector<std::size_t> group_sizes{};
};

Said said_in(const ImportedGroups& made) {
  Said said;
  for (const Group& group : made.groups) {
    said.group_sizes.push_back(group.trees.size());
    for (const Tree& tree : group.trees) {
      for (const Turn& turn : tree.turns)
        said.texts.push_back(small_tokenizer().decode(
            std::span(turn.tokens).subspan(turn.sampled_begin, turn.sampled_end - turn.sampled_begin)));
      said.scores.push_back(tree.leaves[0].score);
    }
  }
  return said;
}

/// A file that tools/golden/imported_rollouts.py let the real package write.
ImportedGroups recorded(const std::string& file, const std::string& format) {
  static const std::unique_ptr<ChatFamily> qwen = make_chat_family("qwen2.5", small_tokenizer()).value();
  const std::string text = read_file(source_path("tests/golden/imported_rollouts/" + file)).value();
  auto read = parse_rollouts(text, file, "");
  EXPECT_TRUE(read.ok()) << (read ? "" : read.error().message);
  EXPECT_EQ(read->format->name, format);
  auto made = import_groups(*read, *qwen, {});
  EXPECT_TRUE(made.ok()) << (made ? "" : made.error().message);
  return std::move(made).value();
}

TEST(RecordedRollouts, OfVerlAreItsTexts) {
  const auto made = recorded("verl.jsonl", "verl");
  const Said said = said_in(made);
  EXPECT_THAT(said.texts, ElementsAre("<think>I add.</think> 5", "It is 6.", "12", "I do not know."));
  EXPECT_THAT(said.scores, ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(said.group_sizes, ElementsAre(2, 2));
  EXPECT_EQ(made.groups[0].step, 7);
  EXPECT_THAT(made.groups[1].ground_truth, ElementsAre("12"));
  EXPECT_EQ(made.groups[0].trees[0].leaves[0].measures, (std::map<std::string, double>{{"acc", 1}}));
}

TEST(RecordedRollouts, OfTrlAreItsConversations) {
  const auto made = recorded("trl.jsonl", "trl");
  const Said said = said_in(made);
  ASSERT_EQ(said.texts.size(), 4u);
  EXPECT_EQ(said.texts[0], " channel bloodshedweyrf McGraw Herbs<|im_end|>");
  EXPECT_NEAR(said.scores[2], 0.0217391308, 1e-12);
  EXPECT_THAT(said.group_sizes, ElementsAre(2, 2));
}

TEST(RecordedRollouts, OfVerifiersAreItsConversations) {
  const Said said = said_in(recorded("verifiers.jsonl", "verifiers"));
  EXPECT_THAT(said.texts, ElementsAre("<think>I add.</think> 5<|im_end|>", "It is 6.<|im_end|>", "12<|im_end|>",
                                      "I do not know.<|im_end|>"));
  EXPECT_THAT(said.scores, ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(said.group_sizes, ElementsAre(2, 2));
}

TEST(RecordedRollouts, OfInspectAreItsSamplesWithCallsAndResults) {
  const auto made = recorded("inspect.json", "inspect");
  const Said said = said_in(made);
  ASSERT_EQ(said.texts.size(), 5u) << "a tool call in the first";
  EXPECT_THAT(said.texts[0], HasSubstr("{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}"));
  EXPECT_EQ(said.texts[1], "<think>I add.</think> 5<|im_end|>");
  EXPECT_EQ(made.groups[0].trees[0].leaves[0].score, 1);
  EXPECT_THAT(said.group_sizes, ElementsAre(2, 2));
  EXPECT_EQ(made.failed, 1);
}

TEST(ImportedGroups, NeedAPromptBeforeWhatWasSaid) {
  const auto read = parse_rollouts(R"({"input": "", "output": "b", "score": 1})", "rows.jsonl", "");
  const auto made = import_groups(*read, chat(), {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "rows.jsonl:1: expected a prompt before what the policy said");
}

TEST(ImportedGroups, NameTheRecordsThatCannotBeWritten) {
  const auto read = parse_rollouts(R"({"prompt_ids": [5], "completion_ids": [70000], "reward": 1}
{"prompt_ids": [5], "completion_ids": [7], "completion_mask": [0], "reward": 1})",
                                   "rows.jsonl", "");
  const auto made = import_groups(*read, chat(), {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message,
            "rows.jsonl:1: completion_ids: the tokenizer has no token 70000\nrows.jsonl:2: the policy said nothing");
}

}  // namespace
}  // namespace carnot
