// Runs that were stopped and resumed end with the bits, the metrics and the alarms of uninterrupted ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/run/run.h"
#include "carnot/core/run/stages.h"
#include "carnot/core/train/model_bundle.h"
#include "tiny_runs.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::kTinyRecipe;
using testing::Runs;

// A board continues after a reply that says nothing: even this policy reaches places to branch at, once it has learned
// from a few demonstrations that replies end.
constexpr const char* kTinyBoard = R"(
threads: 1
model: {hidden_size: 32, intermediate_size: 48, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}
tokenizer: {vocab_size: 300}
env: frozen_lake
sft: {steps: 40, batch_tokens: 600, learning_rate: 1e-2, log_every: 1}
objective: {entropy_coefficient: 0.01}
rollout: {group_size: 6, max_context_tokens: 1200, max_response_tokens: 60}
train: {steps: 4, groups_per_step: 2, learning_rate: 1e-3, save_every: 1}
eval: {tasks: 2}
)";

TEST_F(Runs, StoppedAnywhereAndResumedEqualTheUninterruptedRun) {
  EXPECT_EQ(train("straight", {}), RunEnd::Complete);
  // Six steps of SFT, the first evaluation, four steps of training; inside evaluations and rollouts as well.
  const std::pair<std::size_t, int> stops[] = {{0, 0}, {3, 0}, {6, 0}, {6, 9}, {7, 0}, {7, 9}, {9, 30}};
  for (const auto& [steps, asks] : stops) {
    const std::string name = "stopped_" + std::to_string(steps) + "_" + std::to_string(asks);
    EXPECT_EQ(train(name, {}, stop_after(name, steps, asks)), RunEnd::Interrupted);
    EXPECT_EQ(train(name, {"resume=auto"}), RunEnd::Complete);
    EXPECT_TRUE(weights(name) == weights("straight")) << name;
    EXPECT_EQ(metrics(name), metrics("straight"));
  }
}

TEST_F(Runs, StoppedInAnEvaluationBetweenStepsRepeatItBeforeTheyContinue) {
  const std::vector<std::string> evaluated{"eval.every=2"};
  EXPECT_EQ(train("straight", evaluated), RunEnd::Complete);
  const auto in_evaluation = [&](int asks) {
    const fs::path rollouts = root_ / "stopped" / "rollouts" / "step_2.jsonl";
    return [=, this, left = asks]() mutable {
      return fs::exists(rollouts) && steps_logged("stopped") == 7 && left-- <= 0;
    };
  };
  std::vector<std::string> resumed = evaluated;
  resumed.push_back("resume=auto");
  EXPECT_EQ(train("stopped", evaluated, in_evaluation(5)), RunEnd::Interrupted);
  EXPECT_EQ(steps_logged("stopped"), 7u);
  EXPECT_TRUE(fs::exists(root_ / "stopped" / "checkpoints" / "global_step_2")) << "the step was trained";
  EXPECT_EQ(train("stopped", resumed, in_evaluation(10)), RunEnd::Interrupted) << "and stopped there again";
  EXPECT_EQ(steps_logged("stopped"), 7u);
  EXPECT_EQ(train("stopped", resumed), RunEnd::Complete);
  EXPECT_TRUE(weights("stopped") == weights("straight"));
  EXPECT_EQ(metrics("stopped"), metrics("straight"));
  EXPECT_TRUE(metrics("stopped")[1].contains("val-core/search_qa/success/mean@1"));
}

TEST_F(Runs, StoppedAndResumedRaiseTheAlarmsOfTheUninterruptedRun) {
  const auto steps = expect_resumes({"alarm.steps=3", "alarm.truncated=0", "alarm.entropy_rise=1e-9"}, 8);
  ASSERT_EQ(steps.size(), 4u);
  std::set<std::string> raised;
  for (const auto& [name, value] : steps[3].items())
    if (name.starts_with("alarms/") && !steps[1].contains(name)) raised.insert(name);
  EXPECT_FALSE(raised.empty()) << "an alarm that begins before the stop and starts after it";
}

TEST_F(Runs, AnEvaluationsBarMovesAndIsStoppedInBetween) {
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", {});
  const auto bundle = ModelBundle::make(*recipe);
  const Generation generation = make_generation(*bundle, recipe->rollout, 4);
  std::ostringstream out;
  double time = 0;
  Progress progress(out, {.terminal = true, .now = [&] { return time += 1; }});
  RunControl control{.out = out};
  EXPECT_TRUE(evaluate_with_bar({progress, control}, "evaluation", *recipe, *bundle, *generation.engine));
  std::size_t at = 0;
  for (const char* position : {" evaluation 0/4 (0 %)", " evaluation 4/4 (100 %)"})
    EXPECT_NE(at = out.str().find(position, at), std::string::npos) << position;
  int asked = 0;
  control.stop_requested = [&] { return ++asked > 5; };
  EXPECT_FALSE(evaluate_with_bar({progress, control}, "evaluation", *recipe, *bundle, *generation.engine));
  EXPECT_FALSE(generation.engine->has_work());
}

/// Whether the metric has a different value in every step.
void expect_moves(const std::vector<Json>& steps, const std::string& metric) {
  ASSERT_EQ(steps.size(), 4u);
  std::set<double> values;
  for (const Json& step : steps) values.insert(step.at(metric).get<double>());
  EXPECT_EQ(values.size(), steps.size()) << metric;
}

TEST_F(Runs, WithoutACriticResumeToTheSameBits) { expect_resumes({"method=grpo"}, 8); }

TEST_F(Runs, AnAdaptiveEntropyBonusResumesWithItsCoefficient) {
  const auto steps =
      expect_resumes({"method=grpo + aent", "objective.entropy_coefficient=0.5", "method.aent.adaptive.most=1",
                      "method.aent.adaptive.rate=0.01", "method.aent.adaptive.warmup=0"},
                     9);
  ASSERT_EQ(steps.size(), 4u);
  // Step 0 is warm-up, step 1 updates after it.
  EXPECT_EQ(steps[0].at("actor/entropy_coefficient"), 0.5);
  EXPECT_EQ(steps[1].at("actor/entropy_coefficient"), 0.5);
  EXPECT_LT(steps[2].at("actor/entropy_coefficient"), 0.5);
  EXPECT_LT(steps[3].at("actor/entropy_coefficient"), steps[2].at("actor/entropy_coefficient"));
  // The controller follows the clamped entropy.
  const double outside = steps[1].at("actor/clamped_entropy").get<double>() - 0.23;
  EXPECT_NEAR(steps[2].at("actor/entropy_coefficient").get<double>(), 0.5 - 0.01 * outside, 1e-12);
  EXPECT_LT(steps[1].at("actor/clamped_entropy"), steps[1].at("actor/entropy"));
}

TEST_F(Runs, AnAdaptiveKlInTheRewardResumesWithItsCoefficient) {
  const auto steps = expect_resumes({"objective.kl_in_reward=0.5", "objective.adaptive_kl.enabled=true",
                                     "objective.adaptive_kl.target=1e-3", "objective.adaptive_kl.horizon=100"},
                                    8);
  expect_moves(steps, "actor/reward_kl_penalty_coeff");
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const double error = std::clamp(steps[i - 1].at("actor/reward_kl_penalty").get<double>() / 1e-3 - 1, -0.2, 0.2);
    EXPECT_NEAR(steps[i].at("actor/reward_kl_penalty_coeff").get<double>(),
                steps[i - 1].at("actor/reward_kl_penalty_coeff").get<double>() * (1 + error * 9 / 100), 1e-12);
  }
}

TEST_F(Runs, AnAdaptiveKlInTheLossResumesWithItsCoefficient) {
  const auto steps =
      expect_resumes({"method=grpo", "objective.kl_coefficient=0.5", "objective.adaptive_kl.enabled=true",
                      "objective.adaptive_kl.target=1e-3", "objective.adaptive_kl.horizon=100"},
                     9);
  expect_moves(steps, "actor/kl_coef");
}

TEST_F(Runs, RolloutsThatBranchResumeToTheSameBits) {
  recipe_ = kTinyBoard;
  for (const std::string method : {"arpo", "aepo"}) {
    std::vector<std::string> settings{"method=" + method};
    if (method == "arpo") settings.push_back("method.arpo.branch.initial=2");  // AEPO's probe divides the budget
    const auto steps = expect_resumes(settings, 42);
    double branches = 0;
    for (const Json& step : steps) branches += step.at("rollout/branches").get<double>();
    EXPECT_GT(branches, 0) << method;
    for (const char* name : {"straight", "stopped"}) fs::remove_all(root_ / name);
  }
}

TEST_F(Runs, StoppedRightAfterASaveKeepItsCheckpoint) {
  const fs::path checkpoints = root_ / "run" / "checkpoints";
  const auto folder_of = [&](int step) {
    struct stat info{};
    EXPECT_EQ(::stat((checkpoints / ("global_step_" + std::to_string(step))).c_str(), &info), 0);
    return info.st_ino;
  };
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", {"run_folder=" + (root_ / "run").string()});
  std::ostringstream out;
  ino_t saved = 0;
  const auto stop_after_two = [&] {
    if (!fs::exists(checkpoints / "global_step_2")) return false;
    saved = folder_of(2);
    return true;
  };
  ASSERT_EQ(run_training(*recipe, {.out = out, .stop_requested = stop_after_two}).value(), RunEnd::Interrupted);
  EXPECT_EQ(folder_of(2), saved);
  EXPECT_EQ(train("run", {"resume=auto"}, [] { return true; }), RunEnd::Interrupted);
  EXPECT_EQ(folder_of(2), saved);
  EXPECT_EQ(train("run", {"resume=auto"}), RunEnd::Complete);
}

TEST_F(Runs, WithADamagedCheckpointContinueFromThePreviousOneAndRemoveIt) {
  train("straight", {});
  EXPECT_EQ(train("run", {"train.max_checkpoints=1", "train.save_every=2"}), RunEnd::Complete);
  train("run", {"resume=auto", "train.max_checkpoints=3", "train.steps=7", "train.save_every=1"});
  const fs::path checkpoints = root_ / "run" / "checkpoints";
  for (int step : {6, 7}) fs::resize_file(checkpoints / ("global_step_" + std::to_string(step)) / "config.json", 1);
  const std::string before = weights("run", 7);
  // Damaged checkpoints do not count: the intact one is kept, however few are to be kept.
  const std::vector<std::string> few{"resume=auto", "train.max_checkpoints=1", "train.steps=7", "train.save_every=0"};
  EXPECT_EQ(train("run", few, [] { return true; }), RunEnd::Interrupted);
  EXPECT_EQ(std::distance(fs::directory_iterator(checkpoints), fs::directory_iterator()), 2);
  EXPECT_EQ(*read_file(checkpoints / "latest_checkpointed_iteration.txt"), "5\n");
  train("run", few);
  EXPECT_TRUE(weights("run", 7) == before);
}

TEST_F(Runs, ContinueFromANamedCheckpointInTheirFolderOnlyIfItIsTheLatest) {
  train("run", {});
  const auto named = [&](const std::string& folder, const std::string& step) {
    const fs::path checkpoint = root_ / "run" / "checkpoints" / ("global_step_" + step);
    return failure_of(folder, {"resume=" + checkpoint.string(), "train.steps=5"});
  };
  EXPECT_THAT(named("run", "3"),
              HasSubstr("the run would write over " + (root_ / "run/checkpoints/global_step_4").string()));
  EXPECT_EQ(named("branch", "3"), "");
  EXPECT_EQ(named("run", "4"), "");
  EXPECT_TRUE(weights("branch", 5) == weights("run", 5));
  EXPECT_THAT(named("branch", "4"), HasSubstr("the run would write over"));
}

}  // namespace
}  // namespace carnot
