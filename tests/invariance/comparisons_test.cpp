// Whole comparisons: stopped and continued they report the same, and their runs are those of `carnot train`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/studies/comparison.h"
#include "carnot/studies/metric_curves.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// The entropy bonus makes gradients depend on what was sampled, although an untrained policy earns the same everywhere.
constexpr const char* kTinyRecipe = R"(
threads: 1
model: {hidden_size: 32, intermediate_size: 48, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}
env: {name: search_qa, train_worlds: 2, held_out_worlds: 1}
sft: {steps: 4, batch_tokens: 600, log_every: 1}
objective: {entropy_coefficient: 0.01}
critic: {learning_rate: 1e-2}
rollout: {group_size: 2, max_context_tokens: 320, max_response_tokens: 24}
train: {steps: 2, groups_per_step: 2, learning_rate: 1e-3}
eval: {tasks: 4}
)";

class Comparisons : public ::testing::Test {
 protected:
  Comparisons() : root_(fs::temp_directory_path() / ("carnot_comparisons_test_" + std::to_string(::getpid()))) {
    fs::create_directories(root_);
    EXPECT_TRUE(write_file_atomically(root_ / "tiny.yaml", kTinyRecipe).ok());
  }
  ~Comparisons() override { fs::remove_all(root_); }

  /// Compares GRPO and PPO on two seeds; asks to stop after `polls` polls whether to continue (-1: never).
  Result<RunEnd> compare(const std::string& output, int polls = -1, std::vector<std::string> settings = {},
                         bool terminal = false, const std::string& methods = "grpo, ppo [train.epochs=2]") {
    auto plan = plan_comparison({.recipe = root_ / "tiny.yaml",
                                 .methods = methods,
                                 .seeds = "0-1",
                                 .output = root_ / output,
                                 .settings = std::move(settings)});
    if (!plan) return plan.error();
    out_.str("");
    int asked = 0;
    const RunControl control{
        .out = out_, .terminal = terminal, .stop_requested = [&] { return polls >= 0 && asked++ >= polls; }};
    return run_comparison(*plan, control);
  }

  std::string text(const fs::path& path) const {
    const auto file = read_file(root_ / path);
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
    return file.ok() ? *file : "";
  }

  std::string weights(const fs::path& run) const { return text(run / "checkpoints/global_step_2/model.safetensors"); }

  void train(const std::string& folder, std::vector<std::string> settings) {
    settings.push_back("run_folder=" + (root_ / folder).string());
    auto recipe = Recipe::load(root_ / "tiny.yaml", settings);
    ASSERT_TRUE(recipe.ok()) << recipe.error().message;
    std::ostringstream out;
    const auto end = run_training(*recipe, {.out = out});
    ASSERT_TRUE(end.ok()) << end.error().message;
  }

  fs::path root_;
  std::ostringstream out_{};
};

TEST_F(Comparisons, StoppedAnywhereAndContinuedReportTheSame) {
  ASSERT_TRUE(compare("straight").ok());
  ASSERT_TRUE(compare("stopped", 2, {"threads=1"}).ok());
  EXPECT_THAT(out_.str(), HasSubstr("Stopped with 0 of 4 runs done. To continue: the same command"));
  int rounds = 1;
  for (const int polls : {5, 60, 120, 250}) {
    const auto end = compare("stopped", polls, {"threads=2"});
    ASSERT_TRUE(end.ok()) << end.error().message;
    if (*end == RunEnd::Complete) break;
    ++rounds;
  }
  EXPECT_GT(rounds, 2);
  const auto end = compare("stopped");
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(*end, RunEnd::Complete);
  EXPECT_EQ(text("stopped/comparison.json"), text("straight/comparison.json"));
  for (const char* run : {"seed_0/grpo", "seed_1/grpo", "seed_0/ppo,train.epochs=2", "seed_1/ppo,train.epochs=2"})
    EXPECT_TRUE(weights(fs::path("stopped") / run) == weights(fs::path("straight") / run)) << run;
}

TEST_F(Comparisons, TheirRunsEqualThoseOfTrainBitForBit) {
  ASSERT_TRUE(compare("compared").ok());
  // With SFT inside the run, and with the comparison's SFT.
  train("whole", {"method=grpo", "seed=1"});
  EXPECT_TRUE(weights("whole") == weights("compared/seed_1/grpo"));
  const fs::path start = root_ / "compared/seed_1/warm_start/checkpoints/global_step_4";
  train("continued", {"method=ppo", "train.epochs=2", "seed=1", "sft.steps=0", "model.path=" + start.string()});
  EXPECT_TRUE(weights("continued") == weights("compared/seed_1/ppo,train.epochs=2"));
  EXPECT_FALSE(weights("whole") == weights("continued"));
  EXPECT_TRUE(fs::exists(root_ / "whole/checkpoints/global_step_2/optimizer.safetensors"));
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "compared"))
    EXPECT_THAT(entry.path().filename(), Not(HasSubstr("optimizer"))) << "nothing continues a finished run";
  EXPECT_TRUE(weights("compared/seed_0/grpo") != weights("compared/seed_1/grpo"));
}

TEST_F(Comparisons, SftAloneEndsAtTheWeightsOfTrainWithoutTrainingSteps) {
  ASSERT_TRUE(compare("out", -1, {}, false, "grpo, sft [sft.steps=4], sft [sft.steps=6]").ok());
  const auto weights_at = [&](const std::string& run, int step) {
    return text(fs::path(run) / ("checkpoints/global_step_" + std::to_string(step)) / "model.safetensors");
  };
  EXPECT_TRUE(weights_at("out/seed_1/sft,sft.steps=4/warm_start", 4) == weights_at("out/seed_1/warm_start", 4));
  train("longer", {"seed=1", "sft.steps=6", "train.steps=0"});
  EXPECT_TRUE(weights_at("out/seed_1/sft,sft.steps=6/warm_start", 6) == weights_at("longer/warm_start", 6));
  EXPECT_THAT(text("out/comparison.md"), HasSubstr("6 of 6 runs finished"));
}

TEST_F(Comparisons, AFinishedComparisonRunsNothingAgainAndADifferentOneIsRefused) {
  ASSERT_TRUE(compare("out").ok());
  const auto time = fs::last_write_time(root_ / "out/seed_0/grpo/metrics.jsonl");
  ASSERT_TRUE(compare("out").ok());
  EXPECT_THAT(out_.str(), HasSubstr("4 of them are there already"));
  EXPECT_EQ(fs::last_write_time(root_ / "out/seed_0/grpo/metrics.jsonl"), time);
  const auto other = compare("out", -1, {"train.learning_rate=1e-4"});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, HasSubstr("seed_1/grpo: holds a run of other settings: train.learning_rate"));
}

TEST_F(Comparisons, AFailedRunIsListedAndTheOthersContinue) {
  ASSERT_TRUE(compare("out", 6).ok());  // SFT of seed 0 and the first steps after it
  fs::remove_all(root_ / "out/seed_0/grpo");
  ASSERT_TRUE(write_file_atomically(root_ / "out/seed_0/grpo", "a file where a folder should be").ok());
  const auto end = compare("out");
  ASSERT_FALSE(end.ok());
  EXPECT_THAT(end.error().message, HasSubstr("seed_0/grpo"));
  EXPECT_THAT(text("out/comparison.md"), HasSubstr("3 of 4 runs finished"));
  EXPECT_THAT(text("out/comparison.md"), HasSubstr("* seed_0/grpo: "));
}

TEST_F(Comparisons, PrintOneEstimateOfTheRemainingTime) {
  for (const bool terminal : {true, false}) {
    ASSERT_TRUE(compare(terminal ? "shown" : "logged", -1, {}, terminal).ok());
    // Three of the four runs are followed by others: each line says once how long those will take.
    const std::regex left("[0-9]+:[0-9]+ left");
    const std::string text = out_.str();
    EXPECT_EQ(std::distance(std::sregex_iterator(text.begin(), text.end(), left), std::sregex_iterator()), 3) << text;
    EXPECT_THAT(text, HasSubstr("(3 of 4, about "));
  }
}

TEST_F(Comparisons, ShowThePeakOfEvaluationsNextToTheFinalOne) {
  ASSERT_TRUE(compare("out", -1, {"eval.every=1", "eval.temperature=1"}).ok());
  EXPECT_THAT(text("out/comparison.md"), HasSubstr("## Peak against final success"));
  const auto json = nlohmann::json::parse(text("out/comparison.json"));
  for (const auto& method : json.at("methods"))
    for (const auto& run : method.at("runs")) {
      const auto metrics = read_metric_curves(root_ / "out" / run.at("folder").get<std::string>() / "metrics.jsonl");
      ASSERT_TRUE(metrics.ok());
      double peak = std::max(run.at("before").get<double>(), run.at("after").get<double>());
      for (const auto& [step, success] : metrics->at("val-core/search_qa/success/mean@1"))
        peak = std::max(peak, success);
      EXPECT_EQ(run.at("peak").get<double>(), peak);
      EXPECT_LE(run.at("peak_step").get<double>(), 2);
    }
}

TEST_F(Comparisons, WithoutAWarmStartAllBeginWithTheRecipesOwnPolicy) {
  ASSERT_TRUE(compare("out", -1, {"sft.steps=0"}).ok());
  train("whole", {"method=grpo", "seed=0", "sft.steps=0"});
  EXPECT_TRUE(weights("whole") == weights("out/seed_0/grpo"));
}

}  // namespace
}  // namespace carnot
