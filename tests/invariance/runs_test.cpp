// Whole runs that must leave the same bits: stopped and resumed, on more threads, in other batches.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "carnot/base/file.h"
#include "carnot/nn/safetensors.h"
#include "carnot/train/run.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

// An untrained policy earns the same reward everywhere. The critic and the entropy bonus make every token's gradient
// depend on what was sampled all the same.
constexpr const char* kTinyRecipe = R"(
threads: 1
model: {hidden_size: 32, intermediate_size: 48, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}
env: {name: search_qa, train_worlds: 2, held_out_worlds: 1}
sft: {steps: 6, batch_tokens: 600, log_every: 1}
method: ppo
objective: {entropy_coefficient: 0.01}
critic: {learning_rate: 1e-2}
rollout: {group_size: 3, max_context_tokens: 320, max_response_tokens: 24}
train: {steps: 4, groups: 3, mini_batches: 2, learning_rate: 1e-3, save_every: 1}
eval: {tasks: 4}
)";

class Runs : public testing::Test {
 protected:
  Runs() : root_(fs::temp_directory_path() / ("carnot_runs_test_" + std::to_string(::getpid()))) { fs::create_directories(root_); }
  ~Runs() override { fs::remove_all(root_); }

  /// Trains in the folder `name`; asks to stop when `polls` steps have begun (-1: never).
  RunEnd train(const std::string& name, std::vector<std::string> overrides, int polls = -1) {
    overrides.push_back("run_folder=" + (root_ / name).string());
    auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", overrides);
    EXPECT_TRUE(recipe.ok()) << (recipe.ok() ? "" : recipe.error().message);
    std::ostringstream out;
    int asked = 0;
    const auto end = run_training(*recipe, {.out = out, .stop_requested = [&] { return polls >= 0 && asked++ >= polls; }});
    EXPECT_TRUE(end.ok()) << (end.ok() ? "" : end.error().message);
    return *end;
  }

  std::string weights(const std::string& name, int step = 4) const {
    const auto file = read_file(root_ / name / "checkpoints" / ("global_step_" + std::to_string(step)) / "model.safetensors");
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
    return *file;
  }

  std::string metrics_steps(const std::string& name) const {
    const auto text = read_file(root_ / name / "metrics.jsonl");
    std::string steps;
    for (std::string_view line : split_lines(*text)) steps += std::string(line.substr(0, line.find(','))) + ";";
    return steps;
  }

  fs::path root_;
};

TEST_F(Runs, StoppedAnywhereAndResumedEqualTheStraightRun) {
  EXPECT_EQ(train("straight", {}), RunEnd::Complete);
  for (int polls : {0, 3, 6, 7, 9}) {
    const std::string name = "stopped_" + std::to_string(polls);
    EXPECT_EQ(train(name, {}, polls), RunEnd::Interrupted);
    EXPECT_EQ(train(name, {"resume=auto"}), RunEnd::Complete);
    EXPECT_TRUE(weights(name) == weights("straight")) << "stopped after " << polls << " steps";
    EXPECT_EQ(metrics_steps(name), metrics_steps("straight"));
  }
}

TEST_F(Runs, WithoutACriticResumeToTheSameBits) {
  EXPECT_EQ(train("straight", {"method=grpo"}), RunEnd::Complete);
  EXPECT_EQ(train("stopped", {"method=grpo"}, 8), RunEnd::Interrupted);
  EXPECT_EQ(train("stopped", {"method=grpo", "resume=auto"}), RunEnd::Complete);
  EXPECT_TRUE(weights("stopped") == weights("straight"));
}

TEST_F(Runs, OneThreadEqualsThree) {
  train("one", {"threads=1"});
  train("three", {"threads=3", "rollout.environment_threads=3"});
  EXPECT_TRUE(weights("one") == weights("three"));
}

TEST_F(Runs, SchedulingCannotChangeASampledToken) {
  train("wide", {});
  train("narrow", {"rollout.max_batch_tokens=7", "rollout.cache_tokens=400"});
  EXPECT_TRUE(weights("wide") == weights("narrow"));
}

TEST_F(Runs, AnotherSeedIsAnotherRun) {
  train("zero", {});
  train("one", {"seed=1"});
  EXPECT_FALSE(weights("zero") == weights("one"));
}

TEST_F(Runs, LogProbsOfTheRolloutEqualRecomputedOnes) {
  train("recomputed", {"rollout.old_log_probs=recompute"});
  train("kept", {"rollout.old_log_probs=rollout"});
  EXPECT_TRUE(weights("recomputed") == weights("kept"));
}

TEST_F(Runs, AFolderThatHoldsARunIsRefusedUnlessResumed) {
  train("run", {});
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", {"run_folder=" + (root_ / "run").string()});
  std::ostringstream out;
  const auto end = run_training(*recipe, {.out = out});
  ASSERT_FALSE(end.ok());
  EXPECT_NE(end.error().message.find("resume"), std::string::npos);
}

TEST_F(Runs, ARecipeThatCannotStartLeavesNoFolder) {
  const fs::path folder = root_ / "refused";
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", {"run_folder=" + folder.string(), "env.towns=7", "env.regions=3"});
  std::ostringstream out;
  const auto end = run_training(*recipe, {.out = out});
  ASSERT_FALSE(end.ok());
  EXPECT_NE(end.error().message.find("env.towns"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(Runs, ACorruptCheckpointIsNamed) {
  train("run", {"train.max_checkpoints=1"});
  const fs::path model = root_ / "run" / "checkpoints" / "global_step_4" / "model.safetensors";
  fs::resize_file(model, fs::file_size(model) / 2);
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", {"resume=auto", "run_folder=" + (root_ / "run").string()});
  std::ostringstream out;
  const auto end = run_training(*recipe, {.out = out});
  ASSERT_FALSE(end.ok());
  EXPECT_NE(end.error().message.find("model.safetensors"), std::string::npos) << end.error().message;
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
