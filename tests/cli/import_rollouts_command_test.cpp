// `carnot import-rollouts`: other systems' rollouts through the commands that read Carnot's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "program.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;

std::vector<Json> imported_rows(const std::string& path) {
  std::vector<Json> rows;
  const std::string text = read_file(path).value();
  for (const std::string_view line : split_lines(text)) rows.push_back(Json::parse(line));
  return rows;
}

/// A run of one step, in the folder `run`: a model with its tokenizer.
void train_small_model(const ScratchFolder& scratch) {
  const std::string recipe = scratch.write("tiny.yaml", "run_folder: " + scratch.path("run") + R"(
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
rollout: {group_size: 2, max_context_tokens: 256, max_response_tokens: 16}
train: {steps: 1, groups_per_step: 2}
eval: {tasks: 1, before_training: false}
)");
  const auto run = run_carnot({"train", recipe});
  ASSERT_EQ(run.exit, 0) << run.err;
}

const std::string kConversations =
    R"({"messages": [{"role": "user", "content": "Who ?"},)"
    R"( {"role": "assistant", "content": "<think> I need </think> <answer> a </answer>"}], "reward": 1, "answer": "a"})"
    "\n"
    R"({"messages": [{"role": "user", "content": "Who ?"}, {"role": "assistant", "content": "The mayor"},)"
    R"( {"role": "user", "content": "no"}, {"role": "assistant", "content": "Then b"}], "reward": 0, "answer": "a"})"
    "\n";

TEST(ImportRollouts, OfMessagesAreMeasuredAsScoreDoesAndReadByEveryCommand) {
  const ScratchFolder scratch;
  train_small_model(scratch);
  const std::string file = scratch.write("rows.jsonl", kConversations), output = scratch.path("imported");
  const auto run = run_carnot({"import-rollouts", file, "--model", scratch.path("run"), "--reference",
                               scratch.path("run"), "--answer-lead", "<answer> ", "--output", output});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("2 trajectories (messages: OpenAI's messages with a reward) in 1 groups of 1 step"));

  const auto rows = imported_rows(output + "/rollouts/step_1.jsonl");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].at("turns").size(), 2u);
  std::string ids;
  for (const Json& row : rows) ids += R"({"ids": )" + row.at("token_ids").dump() + "}\n";
  const auto scored = run_carnot({"score", "--model", scratch.path("run"), scratch.write("ids.jsonl", ids)});
  ASSERT_EQ(scored.exit, 0) << scored.err;
  const std::vector<std::string_view> lines = split_lines(scored.out);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Json score = Json::parse(lines[r]);
    for (std::size_t t = 0; t < rows[r].at("loss_mask").size(); ++t) {
      if (rows[r].at("loss_mask")[t] == 0) continue;
      for (const char* field : {"logp_rollout", "logp_old", "logp_ref"})
        EXPECT_EQ(rows[r].at(field)[t], score.at("logp")[t]) << field;
      EXPECT_EQ(rows[r].at("entropy")[t], score.at("entropy")[t]);
    }
  }
  EXPECT_TRUE(rows[1].at("turns")[0].at("info_gain").is_number());

  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"view", output, "--methods", "grpo, grpo + aem, a2tgpo, grpo + actfocus"},
           {"credit", output, "--method", "igpo", "--output", scratch.path("credit.jsonl")},
           {"inspect", output},
           {"grade", output, "--scorers", "contains", "--output", scratch.path("graded.jsonl")}}) {
    const auto read = run_carnot(command);
    EXPECT_EQ(read.exit, 0) << command[0] << ": " << read.err;
    EXPECT_THAT(read.out, ::testing::Not(HasSubstr("is not shown"))) << command[0];
  }
}

TEST(ImportRollouts, OfTheRunsOwnTokensAreItsOwnRows) {
  const ScratchFolder scratch;
  train_small_model(scratch);
  const auto own = imported_rows(scratch.path("run/rollouts/step_1.jsonl"));
  std::string text;
  for (const Json& row : own) {
    const auto tokens = row.at("token_ids"), mask = row.at("loss_mask"), log_probs = row.at("logp_rollout");
    std::size_t first = 0;
    while (mask[first] == 0) ++first;
    Json ids = Json::array(), rest = Json::array(), sampled = Json::array(), known = Json::array();
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      (t < first ? ids : rest).push_back(tokens[t]);
      if (t < first) continue;
      sampled.push_back(mask[t]);
      known.push_back(mask[t] == 1 ? log_probs[t] : Json(0));
    }
    text += Json{{"uid", row.at("uid")},     {"step", row.at("step")},     {"prompt_ids", ids},
                 {"completion_ids", rest},   {"completion_mask", sampled}, {"completion_logprobs", known},
                 {"reward", row.at("score")}}
                .dump() +
            "\n";
  }
  const auto run = run_carnot({"import-rollouts", scratch.write("tokens.jsonl", text), "--tokenizer",
                               scratch.path("run/checkpoints/global_step_1"), "--output", scratch.path("imported")});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("have the log-probabilities of their records"));
  const auto imported = imported_rows(scratch.path("imported/rollouts/step_1.jsonl"));
  ASSERT_EQ(imported.size(), own.size());
  for (std::size_t r = 0; r < own.size(); ++r)
    for (const char* field : {"uid", "token_ids", "loss_mask", "score", "logp_rollout", "output"})
      EXPECT_EQ(imported[r].at(field), own[r].at(field)) << field;
}

TEST(ImportRollouts, RefusesWhatItCannotTakeOver) {
  const ScratchFolder scratch;
  const std::string file = scratch.write("rows.jsonl", kConversations);
  const auto refusal = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"import-rollouts", file, "--output", scratch.path("new")});
    const auto run = run_carnot(arguments);
    EXPECT_NE(run.exit, 0);
    return run.err;
  };
  EXPECT_THAT(refusal({}), HasSubstr("expected either --model DIR, which measures, or --tokenizer DIR"));
  EXPECT_THAT(refusal({"--tokenizer", "x", "--reference", "y"}), HasSubstr("expected --model DIR with them"));
  EXPECT_THAT(refusal({"--tokenizer", scratch.path("nowhere")}), HasSubstr("nowhere"));
  EXPECT_THAT(refusal({"--tokenizer", "x", "--format", "verlx"}), HasSubstr("verl"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("new")));
}

}  // namespace
}  // namespace carnot::testing
