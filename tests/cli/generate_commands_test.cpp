// `carnot generate` and `carnot score` on a run of one step: what they print, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "program.h"

namespace carnot::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// A model after one step of SFT, made once.
class GenerateCommands : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = std::make_unique<ScratchFolder>();
    const std::string recipe = scratch_->write("tiny.yaml", "run_folder: " + scratch_->path("run") + R"(
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
sft: {steps: 1}
rollout: {group_size: 2}
train: {groups_per_step: 1}
eval: {tasks: 1}
)");
    const auto made = run_carnot({"sft", recipe});
    ASSERT_EQ(made.exit, 0) << made.err;
  }
  static void TearDownTestSuite() { scratch_.reset(); }

  static std::string model() { return scratch_->path("run"); }

  static ProgramRun generate(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {"generate", "--model", model(), "--max-tokens", "12"});
    return run_carnot(arguments, input);
  }
  static ProgramRun score(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {"score", "--model", model()});
    return run_carnot(arguments, input);
  }

  static std::unique_ptr<ScratchFolder> scratch_;
};
std::unique_ptr<ScratchFolder> GenerateCommands::scratch_;

TEST_F(GenerateCommands, APromptFromAnArgumentAFileAndStandardInputIsContinuedAlike) {
  const auto argument = generate({"Where is it ?"});
  EXPECT_EQ(argument.exit, 0) << argument.err;
  EXPECT_GT(argument.out.size(), 1u);
  EXPECT_EQ(generate({}, "Where is it ?").out, argument.out);
  EXPECT_EQ(generate({"--messages", R"([{"role": "user", "content": "Where is it ?"}])"}).out, argument.out);
  const auto lines = generate({"--input", "-", "--json"}, "\"Where is it ?\"\n{\"prompt\": \"Who ?\", \"id\": 5}\n");
  ASSERT_EQ(lines.exit, 0) << lines.err;
  const std::vector<std::string_view> rows = split_lines(lines.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(json::parse(rows[0]).at("text").get<std::string>() + "\n", argument.out);
  EXPECT_EQ(json::parse(rows[1]).at("id"), 5);
  EXPECT_THAT(generate({"--raw", "Where is it ?"}).out, ::testing::Ne(argument.out));
}

TEST_F(GenerateCommands, ScoreRepeatsTheLogProbabilitiesOfGenerate) {
  const auto made = generate({"Where is it ?", "--json", "--temperature", "1", "--samples", "2"});
  ASSERT_EQ(made.exit, 0) << made.err;
  std::string sequences;
  for (const auto row : split_lines(made.out)) {
    const json text = json::parse(row);
    json ids = text.at("prompt_ids");
    for (const auto& id : text.at("ids")) ids.push_back(id);
    sequences += json{{"ids", ids}}.dump() + "\n";
  }
  const auto scored = score({}, sequences);
  ASSERT_EQ(scored.exit, 0) << scored.err;
  const auto rows = split_lines(made.out), scores = split_lines(scored.out);
  ASSERT_EQ(rows.size(), 2u);
  ASSERT_EQ(scores.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const json row = json::parse(rows[i]), result = json::parse(scores[i]);
    const std::size_t prompt = row.at("prompt_ids").size();
    ASSERT_EQ(result.at("logp").size(), prompt + row.at("ids").size());
    for (std::size_t t = 0; t < row.at("ids").size(); ++t)
      EXPECT_EQ(row.at("logp")[t], result.at("logp")[prompt + t]) << "text " << i << ", token " << t;
  }
  EXPECT_EQ(score({scratch_->write("sequences.jsonl", sequences)}).out, scored.out);
}

TEST_F(GenerateCommands, RefuseAMissingModel) {
  const auto missing = run_carnot({"generate", "--model", scratch_->path("none"), "x"});
  EXPECT_EQ(missing.exit, 1);
  EXPECT_THAT(missing.err,
              HasSubstr("none: is no folder; expected a Hugging Face folder, a checkpoint or a run folder"));
  scratch_->write("empty/file", "");
  EXPECT_THAT(run_carnot({"score", "--model", scratch_->path("empty")}).err, HasSubstr("holds no checkpoint"));
  const auto usage = run_carnot({"generate", "x"});
  EXPECT_EQ(usage.exit, 2);
  EXPECT_THAT(usage.err, HasSubstr("--model is required"));
}

TEST_F(GenerateCommands, RefuseBadLinesByNumberBeforeAnythingIsWritten) {
  const auto bad = generate({"--input", "-"}, "\"good\"\n{\"prompt\": \n{\"promt\": \"x\"}\n");
  EXPECT_EQ(bad.exit, 1);
  EXPECT_EQ(bad.out, "");
  EXPECT_THAT(bad.err, HasSubstr("standard input:2: not JSON"));
  EXPECT_THAT(bad.err, HasSubstr("standard input:3: promt: unknown key; expected prompt, messages, ids or id"));
  const std::string file = scratch_->write("lines.jsonl", "{\"ids\": [1, 99999999]}\n{\"text\": \"a\", \"what\": 1}\n");
  const auto scores = score({file});
  EXPECT_EQ(scores.exit, 1);
  EXPECT_EQ(scores.out, "");
  EXPECT_THAT(scores.err, HasSubstr(file + ":1: ids[1]: expected a token id below"));
  EXPECT_THAT(scores.err, HasSubstr(file + ":2: what: unknown key"));
}

TEST_F(GenerateCommands, RefuseSettingsThatMakeNoSense) {
  EXPECT_THAT(generate({"x", "--samples", "2"}).err, HasSubstr("at temperature 0 all samples are alike"));
  EXPECT_THAT(generate({"x", "--input", "-"}).err, HasSubstr("--input: given together with prompts"));
  EXPECT_THAT(generate({"x", "--raw", "--system", "s"}).err, HasSubstr("--system: needs a chat format"));
  EXPECT_THAT(generate({"x", "--chat", "morse"}).err, HasSubstr("no chat family 'morse'"));
  EXPECT_THAT(generate({"--raw"}).err, HasSubstr("standard input: has no token"));
  EXPECT_EQ(generate({"x", "--temperature", "-1"}).exit, 2);
  EXPECT_EQ(generate({"x", "--stop", ""}).exit, 2);
}

TEST_F(GenerateCommands, AChatTemplateThatCannotTrainIsRefusedByTheDryRunToo) {
  namespace fs = std::filesystem;
  std::string tokenizer;
  for (const auto& entry : fs::recursive_directory_iterator(scratch_->path("run")))
    if (entry.path().filename() == "tokenizer.json") tokenizer = read_file(entry.path()).value();
  ASSERT_FALSE(tokenizer.empty());
  scratch_->write("foreign/tokenizer.json", tokenizer);
  scratch_->write("foreign/chat_template.jinja", "{{ something(of, its, own) }}");
  const auto run = run_carnot({"train", scratch_->path("run/config.yaml"), "tokenizer.chat=auto",
                               "tokenizer.path=" + scratch_->path("foreign"), "--dry-run"});
  EXPECT_EQ(run.exit, 1);
  EXPECT_THAT(run.err, HasSubstr("tokenizer.chat: the model's chat template cannot be used: "));
  EXPECT_THAT(run.err, HasSubstr("'something' is undefined"));
  EXPECT_THAT(run.err, HasSubstr("tokenizer.chat=chatml or another known format"));
}

}  // namespace
}  // namespace carnot::testing
