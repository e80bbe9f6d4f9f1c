#include "carnot/core/cli/trajectory_view.h"

#include <gtest/gtest.h>

#include "carnot/core/text/bpe_training.h"

namespace carnot {
namespace {

/// A tokenizer of single bytes: its ids are those of train_byte_level_bpe, two added tokens first.
Tokenizer byte_tokenizer() {
  const std::vector<std::string> texts{"a"};
  const auto json = train_byte_level_bpe(texts, {.vocab_size = 258, .added_tokens = {"<|im_end|>", "<think>"}});
  return Tokenizer::parse(json.value(), "bytes").value();
}

void add(Turn& turn, const Tokenizer& tokenizer, SpanKind kind, std::string_view text) {
  const auto tokens = tokenizer.encode(text);
  turn.tokens.insert(turn.tokens.end(), tokens.begin(), tokens.end());
  extend_spans(turn.spans, kind, static_cast<int>(tokens.size()));
}

/// One turn: "Q\n" | "<think>" "ok" "x\x1b" | "<|im_end|>\n" with entropies on what was sampled.
Group small_group(const Tokenizer& tokenizer) {
  Turn turn{.reward = 0.5, .penalty = -0.1, .valid_action = false, .info_gain = 0.25, .tool = "search", .status = "ok"};
  add(turn, tokenizer, SpanKind::Prompt, "Q\n\nR");
  turn.sampled_begin = static_cast<int>(turn.tokens.size());
  add(turn, tokenizer, SpanKind::Think, "<think>ok");
  add(turn, tokenizer, SpanKind::Action, "x\x1b");
  turn.sampled_end = static_cast<int>(turn.tokens.size());
  add(turn, tokenizer, SpanKind::Template, "<|im_end|>\n");
  Tree tree{.turns = {turn}, .leaves = {{.turn = 0, .trajectory_id = "q/0", .score = 0.5, .success = true}}};
  auto& entropy = tree.columns.edit(Column::EntropyRollout, 0, static_cast<int>(turn.tokens.size()));
  for (int t = turn.sampled_begin; t < turn.sampled_end; ++t) entropy[t] = t / 8.0;
  return {.uid = "q", .step = 3, .ground_truth = {"Oslo"}, .info = {{"hops", "2"}}, .trees = {tree}};
}

TEST(TrajectoryView, ListsATrajectoryALineWithItsLineInTheFile) {
  const Tokenizer tokenizer = byte_tokenizer();
  RolloutFile file{.groups = {small_group(tokenizer)}, .line_of_row = {7}};
  file.groups[0].trees[0].leaves[0].dropped = true;
  EXPECT_EQ(trajectory_list(file),
            "row  uid  trajectory  outcome                     score  penalty  turns  tokens  sampled\n"
            "7    q    q/0         finished, success, dropped  0.5    -0.1     1      11      5\n");
}

TEST(TrajectoryView, SaysHowItEndedAndWhatEachTurnBrought) {
  const Group group = small_group(byte_tokenizer());
  EXPECT_EQ(trajectory_facts(trajectory(group, 0, 0, 0)),
            "uid           q\n"
            "trajectory    q/0\n"
            "step          3\n"
            "outcome       finished, success\n"
            "score         0.5\n"
            "penalties     -0.1\n"
            "hops          2\n"
            "ground truth  Oslo\n"
            "\n"
            "turn  tokens  sampled  reward  penalty  valid  gain  tool    status\n"
            "0     0-11    5        0.5     -0.1     no     0.25  search  ok\n");
}

TEST(TrajectoryView, PutsEachLineBehindItsKindWhereThereIsNoColour) {
  const Tokenizer tokenizer = byte_tokenizer();
  const Group group = small_group(tokenizer);
  EXPECT_EQ(span_text(trajectory(group, 0, 0, 0), tokenizer, false),
            "prompt      | Q\\n\n"
            "prompt      | \\n\n"
            "prompt      | R\n"
            "think       | <think>ok\n"
            "action      | x\\x1b\n"
            "template    | <|im_end|>\\n\n");
}

TEST(TrajectoryView, ColoursSpansBelowALegend) {
  const Tokenizer tokenizer = byte_tokenizer();
  const Group group = small_group(tokenizer);
  EXPECT_EQ(span_text(trajectory(group, 0, 0, 0), tokenizer, true),
            "\x1b[90mtemplate\x1b[0m  \x1b[34mprompt\x1b[0m  \x1b[33mthink\x1b[0m  \x1b[32maction\x1b[0m  "
            "\x1b[36mobservation\x1b[0m\n\n"
            "\x1b[34mQ\n\nR\x1b[0m\x1b[33m<think>ok\x1b[0m\x1b[32mx\\x1b\x1b[0m\x1b[90m<|im_end|>\n\x1b[0m\n");
}

TEST(TrajectoryView, ShowsNumbersOfSampledTokensOnly) {
  const Tokenizer tokenizer = byte_tokenizer();
  const Group group = small_group(tokenizer);
  const Trajectory one = trajectory(group, 0, 0, 0);
  CreditTable credit = fresh_credit(std::vector{one});
  credit[0].advantage[5] = -1.5;
  // Ids: the added tokens, then the bytes in the order of the byte alphabet.
  EXPECT_EQ(token_table(one, &credit[0], "{}", &tokenizer, {"entropy", "advantage", "value_target", "logp"}),
            "token  turn  kind    id   text       entropy  advantage  value_target  logp\n"
            "4      0     think   1    '<think>'  0.5      0          -             -\n"
            "5      0     think   113  'o'        0.625    -1.5       -             -\n"
            "6      0     think   109  'k'        0.75     0          -             -\n"
            "7      0     action  122  'x'        0.875    0          -             -\n"
            "8      0     action  29   '\\x1b'     1        0          -             -\n");
  EXPECT_TRUE(token_table(one, nullptr, "{}", nullptr, {})
                  .starts_with("token  turn  kind    id   entropy\n4      0     think   1    0.5\n"));
}

TEST(TrajectoryView, ShowsWhatExplanationsWroteIntoTheRow) {
  const Tokenizer tokenizer = byte_tokenizer();
  const Group group = small_group(tokenizer);
  const std::string row = R"({"ratio": [null, null, null, null, 1.25, 1, 1, 1, null, null, null], "gradient": [1],
    "clip_state": [null, null, null, null, "high", "none", "none", "none", null, null, null]})";
  EXPECT_TRUE(token_table(trajectory(group, 0, 0, 0), nullptr, row, nullptr, {"ratio", "clip_state", "gradient"})
                  .starts_with("token  turn  kind    id   ratio  clip_state  gradient\n"
                               "4      0     think   1    1.25   high        -\n"
                               "5      0     think   113  1      none        -\n"));
}

}  // namespace
}  // namespace carnot
