// `carnot sft` on a file of one's own, and on what `carnot rollout` leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "program.h"

namespace carnot::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// What a row asks and how it is answered.
struct Exchange {
  std::string question, answer;
};
const std::vector<Exchange> kExchanges = {
    {"Which way is north?", "Up, I think."}, {"Name a colour.", "Green"}, {"2 + 2?", "That is 4, of course."}};

std::string recipe_in(const ScratchFolder& scratch) {
  return scratch.write("tiny.yaml", "run_folder: " + scratch.path("run") + R"(
env: {name: dataset, train_file: )" + scratch.path("tasks.jsonl") +
                                        R"(, test_file: )" + scratch.path("tasks.jsonl") +
                                        R"(, max_response_tokens: 40}
model: {hidden_size: 64, intermediate_size: 96, num_layers: 2, num_heads: 4, num_kv_heads: 2, head_dim: 16}
sft: {steps: 150, batch_tokens: 4096, learning_rate: 1e-2, warmup_steps: 5, held_out_share: 0, source: )" +
                                        scratch.path("rows.jsonl") + R"(}
rollout: {group_size: 2, max_context_tokens: 200, temperature: 0.1}
train: {groups_per_step: 3}
eval: {tasks: 0}
)");
}

void write_rows(const ScratchFolder& scratch) {
  std::string rows, tasks;
  for (const Exchange& one : kExchanges) {
    const json question = {{"role", "user"}, {"content", one.question}};
    const json answer = {{"role", "assistant"}, {"content", one.answer}};
    rows += json{{"messages", {question, answer}}}.dump() + "\n";
    tasks += json{{"question", one.question}, {"answer", one.answer}}.dump() + "\n";
  }
  (void)scratch.write("rows.jsonl", rows);
  (void)scratch.write("tasks.jsonl", tasks);
}

std::vector<json> metrics_in(const std::string& folder) {
  std::vector<json> steps;
  const std::string text = read_file(folder + "/metrics.jsonl").value();
  for (const std::string_view line : split_lines(text)) steps.push_back(json::parse(line));
  return steps;
}

TEST(SftCommand, LearnsRowsByHeartAndThenWhatItsOwnRolloutsGotRight) {
  const ScratchFolder scratch;
  write_rows(scratch);
  const std::string recipe = recipe_in(scratch);
  const auto learnt = run_carnot({"sft", recipe});
  ASSERT_EQ(learnt.exit, 0) << learnt.err;
  EXPECT_THAT(learnt.out, HasSubstr("SFT on 3 demonstrations, 0 more held out: "));
  const std::vector<json> steps = metrics_in(scratch.path("run"));
  EXPECT_GT(steps.front().at("sft/loss"), 3);
  EXPECT_LT(steps.back().at("sft/loss"), 0.05);
  for (const Exchange& one : kExchanges)
    EXPECT_EQ(run_carnot({"generate", "--model", scratch.path("run"), "--max-tokens", "40", one.question}).out,
              one.answer + "\n");

  const std::string model = "model.path=" + scratch.path("run/checkpoints/global_step_150");
  const auto sampled = run_carnot({"rollout", recipe, model, "run_folder=" + scratch.path("samples"), "sft.steps=0"});
  ASSERT_EQ(sampled.exit, 0) << sampled.err;
  const auto again = run_carnot({"sft", recipe, model, "run_folder=" + scratch.path("again"), "sft.steps=4",
                                 "sft.learning_rate=0", "sft.held_out_share=0.3", "sft.eval_every=2",
                                 "sft.source=" + scratch.path("samples/rollouts/step_0.jsonl")});
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("of 6 trajectories succeeded; those are the demonstrations"));
  const std::vector<json> kept = metrics_in(scratch.path("again"));
  EXPECT_LT(kept.front().at("sft/loss"), 0.1) << "what it says is what it was taught";
  EXPECT_FALSE(kept.front().contains("val/loss"));
  EXPECT_LT(kept.back().at("val/loss"), 0.1);
  EXPECT_THAT(again.out, AllOf(HasSubstr("SFT 2/4  loss "), HasSubstr("SFT 4/4  loss "), HasSubstr("  held out 0.")));
}

TEST(SftCommand, SaysWhatIsWrongWithTheRowsAndMakesNoFolder) {
  const ScratchFolder scratch;
  write_rows(scratch);
  const std::string recipe = recipe_in(scratch);
  const std::string rows = scratch.write("bad.jsonl",
                                         "{\"messages\": [{\"role\": \"user\", \"content\": \"q\"}]}\n\n"
                                         "{\"messages\": [{\"role\": \"human\", \"content\": \"q\"}]}\n");
  for (const std::string& mode : {std::string("--dry-run"), std::string("sft.steps=2")}) {
    const auto run = run_carnot({"sft", recipe, mode, "sft.source=" + rows});
    EXPECT_EQ(run.exit, 1);
    EXPECT_THAT(run.err,
                AllOf(HasSubstr("sft.source: " + rows + ":1: no message of the assistant to learn; expected one\n"),
                      HasSubstr(rows + ":3: messages[0].role: expected system, user, assistant or tool, found")));
    EXPECT_FALSE(std::filesystem::exists(scratch.path("run")));
  }
  const auto unread = run_carnot({"sft", recipe, "sft.source=[]", "sft.eval_every=7"});
  EXPECT_THAT(unread.err, HasSubstr("sft.eval_every: has no effect: sft.source names no file"));
  EXPECT_THAT(run_carnot({"train", recipe}).err, HasSubstr("eval.tasks: is 0, and training ends with an evaluation"));
}

}  // namespace
}  // namespace carnot::testing
