// Whole runs that must end with the same bits: on more threads, in other batches, with other bookkeeping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/run/run.h"
#include "carnot/core/train/model_bundle.h"
#include "tiny_runs.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using testing::kTinyRecipe;
using testing::Runs;

TEST_F(Runs, HaveTheSameBitsHoweverTheyAreComputed) {
  for (const std::string dtype : {"float32", "bfloat16"}) {
    const auto trained = [&](const std::string& how, std::vector<std::string> settings, const Stop& stop) {
      settings.push_back("dtype=" + dtype);
      return train(dtype + "_" + how, settings, stop);
    };
    const Stop never = [] { return false; };
    const std::string recompute = "rollout.old_log_probs=recompute";
    trained("straight", {recompute}, never);
    EXPECT_EQ(trained("stopped", {recompute}, stop_after(dtype + "_stopped", 8, 5)), RunEnd::Interrupted);
    trained("stopped", {recompute, "resume=auto"}, never);
    trained("kept", {"rollout.old_log_probs=rollout"}, never);
    trained("threads", {"threads=3", "rollout.environment_threads=3"}, never);
    trained("narrow", {"rollout.max_batch_tokens=7", "rollout.cache_tokens=400"}, never);
    const std::string straight = dtype + "_straight";
    for (const std::string how : {"_stopped", "_kept", "_threads", "_narrow"})
      EXPECT_TRUE(weights(dtype + how) == weights(straight)) << dtype + how;
    for (const Json& step : metrics(straight)) EXPECT_EQ(step.at("rollout_corr/log_prob_abs_diff/max"), 0.0);
    const auto stored = read_safetensors(checkpoint(straight) / "model.safetensors");
    EXPECT_EQ(stored->tensors.front().tensor.scalar_type(), dtype == "bfloat16" ? at::kBFloat16 : at::kFloat);
  }
}

TEST_F(Runs, ComputeInTheTypeThatTheirModelIsStoredIn) {
  const auto chosen = [&](const std::vector<std::string>& settings) {
    auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", settings);
    const auto bundle = ModelBundle::make(*recipe);
    EXPECT_TRUE(bundle.ok()) << bundle.error().message;
    EXPECT_EQ(bundle->tensor_options().dtype(), tensor_options(recipe->run).dtype());
    return recipe->run.dtype;
  };
  EXPECT_EQ(chosen({}), "float32") << "random weights";
  for (const std::string dtype : {"bfloat16", "float64", "float32"}) {
    train(dtype, {"dtype=" + dtype, "train.steps=1"});
    const std::string model = "model.path=" + checkpoint(dtype, 1).string();
    EXPECT_EQ(chosen({model}), dtype);
    EXPECT_EQ(chosen({model, "dtype=float32"}), "float32");
  }
  const fs::path half = checkpoint("float32", 1) / "model.safetensors";
  auto weights = read_safetensors(half)->tensors;
  for (NamedTensor& weight : weights) weight.tensor = weight.tensor.to(at::kHalf);
  ASSERT_TRUE(write_safetensors(half, weights).ok());
  EXPECT_EQ(chosen({"model.path=" + checkpoint("float32", 1).string()}), "float32") << "float16 is not trained in";
}

TEST_F(Runs, EndWithTheStepThatReachesTheLimitOfSampledTokens) {
  train("straight", {"train.max_checkpoints=0"});
  std::vector<std::int64_t> sampled;
  for (const Json& step : metrics("straight")) sampled.push_back(step.at("rollout/sampled_tokens"));
  const auto at_most = [](std::int64_t tokens) { return "train.max_sampled_tokens=" + std::to_string(tokens); };
  train("enough", {at_most(sampled[0] + sampled[1])});
  train("one_more", {at_most(sampled[0] + sampled[1] + 1), "eval.every=1"});
  EXPECT_EQ(metrics("enough").size(), 2u);
  EXPECT_EQ(metrics("one_more").size(), 3u);
  EXPECT_TRUE(weights("enough", 2) == weights("straight", 2));
  EXPECT_TRUE(weights("one_more", 3) == weights("straight", 3));
  EXPECT_EQ(Json::parse(*read_file(root_ / "enough" / "summary.json")).at("training_steps"), 2);
}

TEST_F(Runs, CountTheSampledTokensOfAllTheirProcesses) {
  train("straight", {"train.max_checkpoints=0"});
  std::int64_t sampled = 0;
  for (const Json& step : metrics("straight"))
    if (step.at("step") < 4) sampled += step.at("rollout/sampled_tokens").get<std::int64_t>();
  const std::string limit = "train.max_sampled_tokens=" + std::to_string(sampled);
  EXPECT_EQ(train("run", {limit}, stop_after("run", 8)), RunEnd::Interrupted);
  EXPECT_EQ(train("run", {limit, "resume=auto"}), RunEnd::Complete);
  EXPECT_EQ(metrics("run").size(), 3u);
  EXPECT_TRUE(weights("run", 3) == weights("straight", 3));
  EXPECT_EQ(train("run", {limit, "resume=auto"}), RunEnd::Complete) << "there is nothing left to do";
  EXPECT_EQ(metrics("run").size(), 3u);
}

TEST_F(Runs, ThatComputeSharedPrefixesOnceTrainTheSameLogProbs) {
  const std::string once = "train.shared_prefixes=once";
  train("repeated", {"train.shared_prefixes=repeated"});
  train("once", {once});
  train("threads", {once, "threads=3", "rollout.environment_threads=3"});
  EXPECT_TRUE(weights("threads") == weights("once"));
  const auto steps = metrics("once"), repeated = metrics("repeated");
  for (const Json& step : steps) EXPECT_EQ(step.at("rollout_corr/log_prob_abs_diff/max"), 0.0);
  // The first step's rollouts are the same, and its gradient up to rounding.
  const double norm = repeated.at(0).at("actor/grad_norm");
  EXPECT_NEAR(static_cast<double>(steps.at(0).at("actor/grad_norm")), norm, 1e-4 * norm);
}

TEST_F(Runs, UseExpertsMoreEvenlyWithTheRoutersLoss) {
  const std::vector<std::string> experts{"model.family=qwen3_moe", "model.num_experts=4", "model.experts_per_token=1",
                                         "model.expert_size=24"};
  const auto trained = [&](const std::string& name, std::vector<std::string> settings) {
    settings.insert(settings.end(), experts.begin(), experts.end());
    train(name, settings);
  };
  const std::string strong = "train.router_aux_coefficient=1";
  trained("free", {"train.router_aux_coefficient=1e-9"});
  trained("even", {strong});
  trained("threads", {strong, "threads=3"});
  trained("recomputed", {strong, "train.activation_checkpointing=true"});
  EXPECT_TRUE(weights("threads") == weights("even"));
  EXPECT_TRUE(weights("recomputed") == weights("even"));
  const auto unevenness = [&](const std::string& name) {
    return metrics(name).back().at("actor/router_aux_loss").get<double>();
  };
  EXPECT_GE(unevenness("even"), 1);
  EXPECT_LT(unevenness("even") - 1, 0.7 * (unevenness("free") - 1));
  EXPECT_TRUE(metrics("even/warm_start").back().contains("sft/router_aux_loss"));
  EXPECT_THAT(failure_of("dense", {strong}), ::testing::HasSubstr("the model has no experts; expected 0"));
}

TEST_F(Runs, AnotherSeedIsAnotherRun) {
  train("zero", {});
  train("one", {"seed=1"});
  EXPECT_FALSE(weights("zero") == weights("one"));
}

TEST_F(Runs, ThatRecomputedLogProbsResumeWithThoseOfTheRollout) {
  train("straight", {});
  EXPECT_EQ(train("stopped", {"rollout.old_log_probs=recompute"}, stop_after("stopped", 8)), RunEnd::Interrupted);
  EXPECT_EQ(train("stopped", {"resume=auto"}), RunEnd::Complete);
  EXPECT_TRUE(weights("stopped") == weights("straight"));
}

TEST_F(Runs, KeepsTheLogProbabilitiesThatEachUpdateStartedFrom) {
  train("run", {"train.steps=1", "train.mini_batches=1"});
  train("twice", {"train.steps=1", "train.mini_batches=2"});
  const auto on_policy = read_rollout_file(root_ / "run" / "rollouts" / "step_1.jsonl");
  const auto moved = read_rollout_file(root_ / "twice" / "rollouts" / "step_1.jsonl");
  ASSERT_TRUE(on_policy.ok() && moved.ok());
  const auto differences = [](const RolloutFile& file) {
    std::size_t different = 0;
    for (const Trajectory& trajectory : trajectories(file.groups)) {
      const auto old = trajectory.column(Column::LogProbOld), current = trajectory.column(Column::LogProbCurrent);
      for (std::size_t t = 0; t < old.size(); ++t) {
        EXPECT_EQ(std::isnan(old[t]), std::isnan(current[t]));
        different += !std::isnan(old[t]) && old[t] != current[t] ? 1 : 0;
      }
    }
    return different;
  };
  EXPECT_EQ(differences(*on_policy), 0u);
  EXPECT_GT(differences(*moved), 0u);
}

TEST_F(Runs, MeasuresExtraSignalsIfAskedAndTrainsTheSame) {
  train("plain", {"method=grpo"});
  train("measured", {"method=grpo", "rollout.extra_signals=[reference, info_gain]"});
  EXPECT_TRUE(weights("plain") == weights("measured"));
  const auto file = read_rollout_file(root_ / "measured" / "rollouts" / "step_1.jsonl");
  ASSERT_TRUE(file.ok());
  const Tree& tree = file->groups.front().trees.front();
  EXPECT_TRUE(tree.columns.has(Column::EnergyReference));
  EXPECT_TRUE(file->groups.front().query_baseline.has_value());
}

TEST_F(Runs, EvaluationOfACheckpointEqualsTheRunsOwn) {
  train("run", {});
  std::ostringstream out;
  const auto end = run_evaluation({.path = root_ / "run", .json = true}, {.out = out});
  ASSERT_TRUE(end.ok()) << end.error().message;
  const std::string stored = *read_file(root_ / "run" / "validation" / "after.json");
  // All but the seconds at the end.
  EXPECT_EQ(out.str().substr(0, out.str().rfind("\"seconds\"")), stored.substr(0, stored.rfind("\"seconds\"")));
}

}  // namespace
}  // namespace carnot
