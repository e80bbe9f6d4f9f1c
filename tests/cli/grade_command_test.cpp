// `carnot grade`: stored rollouts under another reward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "program.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;

class GradeCommand : public ::testing::Test {
 protected:
  GradeCommand() {
    const std::string rows =
        "{\"question\": \"2+2?\", \"answer\": \"4\"}\n{\"question\": \"3+3?\", \"answer\": \"6\"}\n";
    const std::string file = scratch_.write("rows.jsonl", rows);
    recipe_ = scratch_.write("tiny.yaml", "env: {name: dataset, train_file: " + file + ", test_file: " + file +
                                              R"(, max_response_tokens: 24}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
method: grpo
objective: {kl_coefficient: 0}
rollout: {group_size: 4}
train: {steps: 1, groups_per_step: 2}
eval: {tasks: 1, before_training: false}
)");
    reward_ = scratch_.write("vowels.py",
                             "def score(completions, answer, question, **columns):\n"
                             "    return [sum(c in 'aeiou' for c in text) + len(text) + len(a) + len(q)\n"
                             "            for text, a, q in zip(completions, answer, question)]\n");
  }

  /// Rolls out in the folder `name`, with these scorers; returns the file.
  std::string rollouts(const std::string& name, const std::vector<std::string>& scorers) const {
    std::vector<std::string> arguments{"rollout", recipe_, "run_folder=" + scratch_.path(name)};
    arguments.insert(arguments.end(), scorers.begin(), scorers.end());
    const auto run = run_carnot(arguments);
    EXPECT_EQ(run.exit, 0) << run.err;
    return scratch_.path(name + "/rollouts/step_0.jsonl");
  }

  /// What a row holds of its score; its credit and times left out.
  static std::vector<Json> scored(const std::string& path) {
    std::vector<Json> rows;
    const auto text = read_file(path);
    EXPECT_TRUE(text.ok()) << (text.ok() ? "" : text.error().message);
    for (const std::string_view line : split_lines(*text)) {
      Json row = Json::parse(line);
      for (const char* field : {"advantage", "weight", "clip_scale", "value_target"}) row.erase(field);
      for (Json& turn : row["turns"]) turn.erase("latency_ms");
      rows.push_back(std::move(row));
    }
    return rows;
  }

  ScratchFolder scratch_;
  std::string recipe_, reward_;
};

TEST_F(GradeCommand, GivesTheRowsThatARunWithTheOtherScorersWrites) {
  const std::string old = rollouts("old", {"env.scorers=[exact_match]"});
  const std::string expected = rollouts("new", {"env.scorers=[length, 0.5 * format]", "env.length=10"});
  const auto run = run_carnot(
      {"grade", old, "--scorers", "length,0.5 * format", "length=10", "--output", scratch_.path("graded.jsonl")});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(scored(scratch_.path("graded.jsonl")), scored(expected));
  EXPECT_NE(scored(old), scored(expected));
  EXPECT_THAT(run.out, HasSubstr("groups with spread"));
  EXPECT_THAT(run.out, HasSubstr("scores change; the most:"));
}

TEST_F(GradeCommand, TakesPythonFunctionsAndWhatResponsesBeginWith) {
  const std::string prefix = "assistant_prefix=Well", output = scratch_.path("graded.jsonl");
  rollouts("old", {"env.scorers=[exact_match]", "env." + prefix});
  const std::string expected = rollouts("new", {"env.reward=" + reward_ + ":score", "env." + prefix});
  const auto run =
      run_carnot({"grade", scratch_.path("old"), "--reward", reward_ + ":score", prefix, "--output", output});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(scored(output), scored(expected));
}

TEST_F(GradeCommand, WritesRowsThatOtherCommandsTake) {
  rollouts("old", {"env.scorers=[exact_match]"});
  const std::string graded = scratch_.path("old/rollouts/step_1.jsonl");
  ASSERT_EQ(run_carnot({"grade", scratch_.path("old"), "--scorers", "length", "--output", graded}).exit, 0);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"credit", graded, "--method", "grpo"}, {"view", graded}, {"inspect", graded}}) {
    const auto run = run_carnot(command);
    EXPECT_EQ(run.exit, 0) << command.front() << ": " << run.err;
  }
  const auto sft = run_carnot({"sft", recipe_, "sft.steps=1", "sft.source=" + graded, "sft.held_out_share=0",
                               "eval.tasks=0", "run_folder=" + scratch_.path("sft")});
  EXPECT_EQ(sft.exit, 0) << sft.err;
}

TEST_F(GradeCommand, SaysWhatIsMissing) {
  const std::string old = rollouts("old", {"env.scorers=[exact_match]"}), output = scratch_.path("graded.jsonl");
  EXPECT_EQ(run_carnot({"grade", old, "--output", output}).exit, 2);
  EXPECT_THAT(run_carnot({"grade", old, "--scorers", "exakt_match", "--output", output}).err,
              HasSubstr("did you mean 'exact_match'?"));
  EXPECT_THAT(run_carnot({"grade", old, "--reward", scratch_.path("none.py"), "--output", output}).err,
              HasSubstr("none.py: no such file"));
  const std::string alone = scratch_.write("alone/alone.jsonl", *read_file(old));
  EXPECT_THAT(run_carnot({"grade", alone, "--scorers", "length", "--output", output}).err, HasSubstr("--tokenizer"));
  EXPECT_FALSE(std::filesystem::exists(output));
}

}  // namespace
}  // namespace carnot::testing
