// `carnot export`: a run with adapters to folders for other programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "program.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;

TEST(ExportCommand, WritesARunsPolicyMergedOrSeparateAndRefusesToOverwrite) {
  const ScratchFolder scratch;
  const std::string shape =
      "model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}\n";
  const std::string settings = "run_folder: " + scratch.path("run") + R"(
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
lora: {rank: 2, targets: [q_proj, down_proj]}
objective: {kl_coefficient: 0}
rollout: {group_size: 2}
train: {steps: 1, groups_per_step: 1}
eval: {tasks: 1, before_training: false}
)";
  const auto trained = run_carnot({"train", scratch.write("tiny.yaml", settings + shape)});
  ASSERT_EQ(trained.exit, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("Adapters of rank 2 are trained: 320 numbers"));

  const auto apart = run_carnot({"export", scratch.path("run"), "--output", scratch.path("apart")});
  ASSERT_EQ(apart.exit, 0) << apart.err;
  EXPECT_TRUE(std::filesystem::exists(scratch.path("apart/base/model.safetensors")));
  EXPECT_TRUE(std::filesystem::exists(scratch.path("apart/adapter/adapter_model.safetensors")));
  // `eval`, `generate` and `score` take base and adapter as they are.
  EXPECT_EQ(run_carnot({"eval", scratch.path("run")}).exit, 0);
  EXPECT_EQ(run_carnot({"generate", "--model", scratch.path("run"), "--max-tokens", "4", "--raw", "the"}).exit, 0);
  const std::vector<std::string> merge{"export",       scratch.path("run"), "--output", scratch.path("merged") + "/",
                                       "--merge-lora", "--dtype",           "bfloat16"};
  ASSERT_EQ(run_carnot(merge).exit, 0);
  const auto first_logprob = [&](const std::string& model) {
    const auto scored = run_carnot({"score", "--model", scratch.path(model), "-"}, "{\"ids\": [5, 9, 2, 7]}\n");
    EXPECT_EQ(scored.exit, 0) << scored.err;
    return nlohmann::json::parse(scored.out).at("logp").at(1).get<double>();
  };
  EXPECT_NEAR(first_logprob("run"), first_logprob("merged"), 0.05) << "the merged weights are rounded to bfloat16";
  EXPECT_THAT(*read_file(scratch.path("merged/config.json")), HasSubstr("bfloat16"));
  const auto again = run_carnot(merge);
  EXPECT_EQ(again.exit, 1);
  EXPECT_THAT(again.err, HasSubstr("--overwrite"));
  EXPECT_EQ(run_carnot({"export", scratch.path("run")}).exit, 2) << "without --output";

  // The PEFT folder is trained further; what the folder says wins over nothing, and a recipe that disagrees is
  // refused.
  const std::string recipe = scratch.write("onward.yaml", settings);
  const auto onward = [&](const std::string& folder, const std::string& rank) {
    return run_carnot({"train", recipe, "run_folder=" + scratch.path(folder),
                       "model.path=" + scratch.path("apart/base"), "model.adapter=" + scratch.path("apart/adapter"),
                       rank});
  };
  const auto agreed = onward("agreed", "lora.rank=0");
  ASSERT_EQ(agreed.exit, 0) << agreed.err;
  EXPECT_THAT(*read_file(scratch.path("agreed/config.yaml")), HasSubstr("rank: 2"));
  EXPECT_THAT(onward("refused", "lora.rank=3").err,
              HasSubstr("holds adapters of rank 2, alpha 16 on q_proj down_proj; lora.* asks for adapters of rank 3"));
}

}  // namespace
}  // namespace carnot::testing
