// `carnot compare` as a user sees it: help, refusals, the plan, Ctrl-C and continuing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "program.h"

namespace carnot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string tiny_recipe(const ScratchFolder& scratch) {
  return scratch.write("tiny.yaml", R"(
threads: 1
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
rollout: {group_size: 2, max_context_tokens: 320, max_response_tokens: 24}
train: {steps: 2, groups_per_step: 1}
eval: {tasks: 1}
)");
}

TEST(CompareCommand, HelpShowsTheFormatOfAListOfMethods) {
  const auto run = run_carnot({"compare", "--help"});
  EXPECT_EQ(run.exit, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("--methods"), HasSubstr("a2tgpo [train.epochs=2]"), HasSubstr("--seeds"),
                             HasSubstr("train.steps")));
}

TEST(CompareCommand, RefusesBeforeAnythingRuns) {
  const ScratchFolder scratch;
  const std::string output = scratch.path("out");
  const auto run = run_carnot(
      {"compare", tiny_recipe(scratch), "--methods", "grpo, grqo, rloo [train.stepz=1]", "--output", output});
  EXPECT_EQ(run.exit, 1);
  EXPECT_THAT(run.err, AllOf(HasSubstr("method: there is no method 'grqo'; did you mean 'grpo'?"),
                             HasSubstr("did you mean train.steps?")));
  EXPECT_FALSE(std::filesystem::exists(output));
  EXPECT_EQ(run_carnot({"compare"}).exit, 2);
  EXPECT_EQ(run_carnot({"compare", scratch.path("none.yaml")}).exit, 1);
  const auto plan = run_carnot(
      {"compare", tiny_recipe(scratch), "--methods", "grpo, rloo", "--seeds", "0,3", "--output", output, "--dry-run"});
  EXPECT_EQ(plan.exit, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(HasSubstr("4 runs: 2 methods, 2 seeds; base grpo"), HasSubstr("seed_3/rloo: to do")));
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST(CompareCommand, StopsAtCtrlCAndContinuesWithTheSameCommand) {
  const ScratchFolder scratch;
  const std::string first = scratch.path("out/seed_0/grpo/metrics.jsonl");
  const std::vector<std::string> command{
      "compare", tiny_recipe(scratch), "--methods",         "grpo, rloo",    "--seeds",
      "0-1",     "--output",           scratch.path("out"), "train.steps=15"};
  const auto stopped = interrupt_carnot(command, [&] { return std::filesystem::exists(first); });
  EXPECT_EQ(stopped.exit, 130);
  EXPECT_THAT(stopped.out, HasSubstr("To continue: the same command"));
  const auto whole = run_carnot(command);
  ASSERT_EQ(whole.exit, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("4 of 4 runs finished"));
  const Json comparison = Json::parse(read_file(scratch.path("out/comparison.json")).value());
  EXPECT_EQ(comparison.at("base"), "grpo");
  EXPECT_EQ(comparison.at("methods").at(1).at("difference").at("seeds"), 2);
  EXPECT_THAT(read_file(scratch.path("out/seed_1/rloo/log.txt")).value(), HasSubstr("step 15/15  success"));
  EXPECT_TRUE(std::filesystem::exists(scratch.path("out/report.html")));
}

}  // namespace
}  // namespace carnot::testing
