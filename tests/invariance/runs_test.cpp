// Whole runs that must end with the same bits: stopped and resumed, on more threads, in other batches.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/hf/adapter_folder.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/run/run.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/core/run/stages.h"
#include "carnot/core/train/model_bundle.h"
#include "tiny_runs.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using testing::bytes_in;
using testing::kLora;
using testing::kTinyRecipe;

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

class Runs : public testing::TinyRuns {};

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

TEST_F(Runs, WithAdaptersTrainTheAdaptersAlone) {
  train("run", kLora);
  const auto tensors = [&](int step, const std::string& file) {
    return read_safetensors(checkpoint("run", step) / file)->tensors;
  };
  // The base is the recipe's random model, bit for bit, for every checkpoint.
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", kLora);
  const auto bundle = ModelBundle::make(*recipe);
  const Model stored = bundle->policy->clone();
  for (int step : {3, 4}) {
    const auto base = find_base(checkpoint("run", step));
    ASSERT_TRUE(base.ok()) << base.error().message;
    ASSERT_TRUE(load_weights(stored, read_model_tensors(*base)->tensors, "base").ok());
    for (std::size_t i = 0; i < stored.parameters().size(); ++i)
      EXPECT_TRUE(at::equal(stored.parameters()[i].tensor, bundle->policy->parameters()[i].tensor)) << i;
  }
  // The method's KL needs a reference: the adapters as they were at the start of training, and nothing else.
  const auto now = tensors(4, "adapter/adapter_model.safetensors"), reference = tensors(4, "reference.safetensors");
  ASSERT_EQ(now.size(), 28u);
  ASSERT_EQ(reference.size(), 28u);
  for (std::size_t i = 0; i < now.size(); ++i)
    EXPECT_FALSE(at::equal(now[i].tensor, reference[i].tensor)) << now[i].name;
  // The optimizer has only the adapters.
  EXPECT_EQ(tensors(4, "optimizer.safetensors").size(), 2u * 28u);
}

TEST_F(Runs, WithAdaptersStoppedAndResumedEqualTheUninterruptedRun) {
  train("straight", kLora);
  for (const std::size_t steps : {3u, 8u}) {
    const std::string name = "stopped_" + std::to_string(steps);
    EXPECT_EQ(train(name, kLora, stop_after(name, steps)), RunEnd::Interrupted);
    std::vector<std::string> resumed = kLora;
    resumed.push_back("resume=auto");
    EXPECT_EQ(train(name, resumed), RunEnd::Complete);
    EXPECT_TRUE(weights(name) == weights("straight")) << "stopped after " << steps << " steps";
  }
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml",
                              {"lora.rank=4", "resume=auto", "run_folder=" + (root_ / "straight").string()});
  std::ostringstream out;
  const auto end = run_training(*recipe, {.out = out});
  ASSERT_FALSE(end.ok());
  EXPECT_NE(end.error().message.find("holds adapters of rank 3, alpha 6 on q_proj"), std::string::npos)
      << end.error().message;
}

TEST_F(Runs, WithAdaptersStoreTheWeightsBelowThemOnce) {
  train("run", kLora);
  int models = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "run"))
    models += entry.path().filename() == "model.safetensors" ? 1 : 0;
  EXPECT_EQ(models, 1);
  // PPO's critic is its own model.
  std::uintmax_t adapters = bytes_in(checkpoint("run") / "adapter"), rest = adapters;
  for (const char* file : {"optimizer.safetensors", "reference.safetensors", "critic.safetensors",
                           "critic_optimizer.safetensors", "tokenizer.json"})
    rest += fs::file_size(checkpoint("run") / file);
  EXPECT_LT(bytes_in(checkpoint("run")), rest + 6000);
}

/// The layout of version 0.1: the frozen weights and the merged ones in the checkpoint.
void make_old(const fs::path& checkpoint) {
  const auto base = find_base(checkpoint);
  fs::copy(*base, checkpoint / kBaseFolder);
  const auto merged = load_merged(checkpoint, at::TensorOptions(at::kFloat));
  ASSERT_TRUE(write_safetensors(checkpoint / "model.safetensors", merged->parameters()).ok());
  fs::remove(checkpoint / "base_model.json");
  Json manifest = Json::parse(*read_file(checkpoint / "MANIFEST.json"));
  manifest["files"].erase("base_model.json");
  for (const std::string name : {"model.safetensors", "base/model.safetensors", "base/config.json"})
    manifest["files"][name] = {{"size", fs::file_size(checkpoint / name)},
                               {"sha256", *sha256_of_file(checkpoint / name)}};
  ASSERT_TRUE(write_file_atomically(checkpoint / "MANIFEST.json", manifest.dump()).ok());
}

TEST_F(Runs, WithAdaptersContinueFromCheckpointsOfTheEarlierLayout) {
  train("straight", kLora);
  EXPECT_EQ(train("old", kLora, stop_after("old", 8)), RunEnd::Interrupted);
  make_old(checkpoint("old", 2));
  fs::remove_all(checkpoint("old", 1));
  fs::remove_all(root_ / "old" / "warm_start" / "base");
  std::vector<std::string> resumed = kLora;
  resumed.push_back("resume=auto");
  EXPECT_EQ(train("old", resumed), RunEnd::Complete);
  EXPECT_TRUE(weights("old") == weights("straight"));
  EXPECT_FALSE(fs::exists(checkpoint("old") / "model.safetensors"));
  std::ostringstream out;
  make_old(checkpoint("old"));
  EXPECT_TRUE(run_evaluation({.path = root_ / "old", .json = true}, {.out = out}).ok());
}

TEST_F(Runs, WithAdaptersOnAModelReferToItAndReportItsChanges) {
  train("start", {"train.steps=0"});
  fs::copy(root_ / "start" / "warm_start" / "checkpoints" / "global_step_6", root_ / "model");
  std::vector<std::string> settings = kLora;
  for (const std::string& more : {"model.path=" + (root_ / "model").string(), std::string("sft.steps=0")})
    settings.push_back(more);
  std::string shapeless = kTinyRecipe;  // model.path decides on the shape
  shapeless.erase(shapeless.find("model:"), shapeless.find("\nenv:") + 1 - shapeless.find("model:"));
  recipe_ = shapeless.c_str();
  train("straight", settings);
  EXPECT_EQ(train("stopped", settings, stop_after("stopped", 2, 3)), RunEnd::Interrupted);
  EXPECT_FALSE(fs::exists(root_ / "straight" / "base"));
  EXPECT_EQ(*find_base(checkpoint("straight")), root_ / "model");
  settings.push_back("resume=auto");

  const auto refusal = [&] {
    settings.push_back("run_folder=" + (root_ / "stopped").string());
    auto recipe = Recipe::parse(recipe_, "tiny.yaml", settings);
    settings.pop_back();
    std::ostringstream out;
    const auto end = run_training(*recipe, {.out = out});
    return end.ok() ? std::string() : end.error().message;
  };
  const std::string config = *read_file(root_ / "model" / "config.json");
  ASSERT_TRUE(write_file_atomically(root_ / "model" / "config.json", config + "\n").ok());
  EXPECT_NE(refusal().find("model: changed since the adapters were trained on it: config.json"), std::string::npos);
  ASSERT_TRUE(write_file_atomically(root_ / "model" / "config.json", config).ok());
  EXPECT_EQ(train("stopped", settings), RunEnd::Complete);
  EXPECT_TRUE(weights("stopped") == weights("straight"));
  EXPECT_EQ(metrics("stopped"), metrics("straight"));
}

TEST_F(Runs, WithAdaptersHaveRolloutLogProbsThatEqualRecomputedOnes) {
  std::vector<std::string> kept = kLora;
  std::vector<std::string> recomputed = kLora;
  kept.push_back("rollout.old_log_probs=rollout");
  recomputed.push_back("rollout.old_log_probs=recompute");
  train("recomputed", recomputed);
  train("kept", kept);
  EXPECT_TRUE(weights("recomputed") == weights("kept"));
  const auto metrics = read_file(root_ / "kept" / "metrics.jsonl");
  for (std::string_view line : split_lines(*metrics))
    EXPECT_NE(line.find("\"rollout_corr/log_prob_abs_diff/max\":0.0,"), std::string_view::npos) << line;
}

TEST_F(Runs, InBFloat16HaveTheSameGuarantees) {
  const std::string bfloat16 = "dtype=bfloat16";
  train("straight", {bfloat16, "rollout.old_log_probs=recompute"});
  EXPECT_EQ(train("stopped", {bfloat16, "rollout.old_log_probs=recompute"}, stop_after("stopped", 8, 5)),
            RunEnd::Interrupted);
  train("stopped", {bfloat16, "rollout.old_log_probs=recompute", "resume=auto"});
  train("kept", {bfloat16, "rollout.old_log_probs=rollout"});
  train("threads", {bfloat16, "threads=3", "rollout.environment_threads=3"});
  train("narrow", {bfloat16, "rollout.max_batch_tokens=7", "rollout.cache_tokens=400"});
  for (const char* name : {"stopped", "kept", "threads", "narrow"})
    EXPECT_TRUE(weights(name) == weights("straight")) << name;
  for (const Json& step : metrics("straight")) EXPECT_EQ(step.at("rollout_corr/log_prob_abs_diff/max"), 0.0);
  const auto stored = read_safetensors(checkpoint("straight") / "model.safetensors");
  EXPECT_EQ(stored->tensors.front().tensor.scalar_type(), at::kBFloat16);
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

/// The tasks of another environment, of which some do not open.
class FailingFactory : public EnvironmentFactory {
 public:
  using Fails = std::function<bool(Split split, std::int64_t index)>;

  FailingFactory(std::unique_ptr<EnvironmentFactory> inner, Fails fails)
      : inner_(std::move(inner)), fails_(std::move(fails)) {}

  void fields(FieldVisitor& visit) override { inner_->fields(visit); }
  Status prepare(std::uint64_t seed) override { return inner_->prepare(seed); }
  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    if (fails_(split, index)) throw std::runtime_error("no such world");
    return inner_->make(split, index);
  }
  std::unique_ptr<ScriptedAgent> script(const Environment& environment, double progress,
                                        RandomStream random) const override {
    return inner_->script(environment, progress, random);
  }
  std::unique_ptr<Environment> make_demonstrated(std::int64_t index, double progress) const override {
    return inner_->make_demonstrated(index, progress);
  }
  Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const override { return inner_->make_game(seed); }
  std::string answer_lead() const override { return inner_->answer_lead(); }
  std::vector<std::string> tokenizer_texts() const override { return inner_->tokenizer_texts(); }
  std::vector<std::string> tokenizer_words() const override { return inner_->tokenizer_words(); }
  std::vector<std::string> tokenizer_added_tokens() const override { return inner_->tokenizer_added_tokens(); }

 private:
  std::unique_ptr<EnvironmentFactory> inner_;
  Fails fails_;
};

// Three groups per step: tasks 6 to 8 are those of the third.
TEST_F(Runs, InWhichTooManyTrajectoriesFailEndWithACheckpointAndContinueOnceTheWorldIsBack) {
  EXPECT_EQ(train("straight", {}), RunEnd::Complete);
  const auto with_failures = [&](const FailingFactory::Fails& fails, std::vector<std::string> overrides) {
    overrides.push_back("run_folder=" + (root_ / "failed").string());
    auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml", overrides).value();
    recipe.environment = std::make_unique<FailingFactory>(std::move(recipe.environment), fails);
    std::ostringstream out;
    return run_training(recipe, {.out = out});
  };
  const auto in_third_step = [](Split split, std::int64_t index) { return split == Split::Train && index >= 7; };
  const auto refused = with_failures(in_third_step, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.error().message,
      "training step 3: 6 of 9 trajectories were lost to infrastructure failures, more than the share of 0.5 that "
      "train.max_infra_failures allows. The first: train_7 (search_qa): no such world. A checkpoint is written. "
      "To continue, run the same command with resume=auto");
  EXPECT_TRUE(fs::exists(root_ / "failed" / "checkpoints" / "global_step_2"));
  const auto in_evaluations = [](Split split, std::int64_t) { return split == Split::Validation; };
  const auto unevaluated = with_failures(in_evaluations, {"resume=auto"});
  ASSERT_FALSE(unevaluated.ok());
  EXPECT_EQ(unevaluated.error().message.substr(0, 81),
            "evaluation after: 4 of 4 trajectories were lost to infrastructure failures, more ");
  EXPECT_TRUE(with_failures([](Split, std::int64_t) { return false; }, {"resume=auto"}).ok());
  EXPECT_TRUE(weights("failed") == weights("straight"));
  EXPECT_EQ(metrics("failed"), metrics("straight"));
}

TEST_F(Runs, MayLoseAsManyTrajectoriesAsTheRecipeAllows) {
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml",
                              {"train.max_infra_failures=0.7", "run_folder=" + (root_ / "some").string()})
                    .value();
  recipe.environment = std::make_unique<FailingFactory>(
      std::move(recipe.environment),
      [](Split split, std::int64_t index) { return split == Split::Train && index % 3 > 0; });
  std::ostringstream out;
  const auto end = run_training(recipe, {.out = out});
  EXPECT_TRUE(end.ok()) << (end.ok() ? "" : end.error().message);
}

TEST_F(Runs, ThatUpdateNothingFail) {
  std::ostringstream out;
  auto trained = Recipe::parse(kTinyRecipe, "tiny.yaml",
                               {"objective.entropy_coefficient=1e300", "run_folder=" + (root_ / "trained").string()})
                     .value();
  const auto training = run_training(trained, {.out = out});
  ASSERT_FALSE(training.ok());
  EXPECT_EQ(training.error().message,
            "training: no update changed the weights; all were left out, since their gradients are not finite. The "
            "last checkpoint is written");
  EXPECT_TRUE(fs::exists(root_ / "trained" / "checkpoints" / "global_step_4"));

  auto recipe =
      Recipe::parse(kTinyRecipe, "tiny.yaml", {"model.init_std=1e30", "run_folder=" + (root_ / "sft").string()})
          .value();
  const auto sft = run_sft(recipe, {.out = out});
  ASSERT_FALSE(sft.ok());
  EXPECT_EQ(sft.error().message.substr(0, 36), "SFT: no update changed the weights; ");
}

TEST_F(Runs, MoreThreadsThanAnyMachineHasAreRefused) {
  for (const std::string key : {"threads", "rollout.environment_threads"}) {
    const auto many = Recipe::parse(kTinyRecipe, "tiny.yaml", {key + "=100000"});
    ASSERT_FALSE(many.ok()) << key;
    EXPECT_NE(many.error().message.find(key + ": expected an integer"), std::string::npos) << many.error().message;
    EXPECT_NE(many.error().message.find("found 100000"), std::string::npos) << many.error().message;
  }
  const Status prepared = ModelBundle::prepare_device({.threads = 100000});
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().message, "threads: 100000; expected a number from 0 to 256");
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
  auto recipe =
      Recipe::parse(kTinyRecipe, "tiny.yaml", {"run_folder=" + folder.string(), "env.towns=7", "env.regions=3"});
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
    auto recipe = Recipe::parse(
        kTinyRecipe, "tiny.yaml",
        {"run_folder=" + (root_ / folder).string(),
         "resume=" + (root_ / "run" / "checkpoints" / ("global_step_" + step)).string(), "train.steps=5"});
    std::ostringstream out;
    const auto end = run_training(*recipe, {.out = out});
    return end ? std::string() : end.error().message;
  };
  EXPECT_NE(named("run", "3").find("the run would write over " + (root_ / "run/checkpoints/global_step_4").string()),
            std::string::npos);
  EXPECT_EQ(named("branch", "3"), "");
  EXPECT_EQ(named("run", "4"), "");
  EXPECT_TRUE(weights("branch", 5) == weights("run", 5));
  EXPECT_NE(named("branch", "4").find("the run would write over"), std::string::npos);
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

/// The lines that a tracker recorded.
std::vector<Json> recorded(const fs::path& file) {
  std::vector<Json> messages;
  const auto text = read_file(file);
  EXPECT_TRUE(text.ok()) << (text.ok() ? "" : text.error().message);
  if (text)
    for (const std::string_view line : split_lines(*text)) messages.push_back(Json::parse(line));
  return messages;
}

std::string tracker(const std::string& script) { return "track.command=[sh, -c, '" + script + "']"; }

TEST_F(Runs, WithATrackerEqualThoseWithoutWhateverItDoes) {
  EXPECT_EQ(train("straight", {}), RunEnd::Complete);
  const std::string heard = (root_ / "heard").string();
  int number = 0;
  for (const std::string& script : {
           "cat > " + heard,                               // what it should do
           std::string("exit 1"),                          // ends at once
           std::string("read a; kill -9 $$"),              // dies of its first message
           std::string("exec sleep 1000"),                 // hangs
           std::string("while read a; do sleep 1; done"),  // is slow
           std::string("exec <&-; exec sleep 1000"),       // takes nothing
           std::string("yes"),                             // writes without end
           std::string("head -c 100000 /dev/urandom; echo {; cat > /dev/null"),
       }) {
    const std::string name = "tracked_" + std::to_string(number++);
    EXPECT_EQ(train(name, {tracker(script), "track.finish_seconds=0.3"}), RunEnd::Complete) << script;
    EXPECT_TRUE(weights(name) == weights("straight")) << script;
    EXPECT_EQ(metrics(name), metrics("straight")) << script;
  }
}

TEST_F(Runs, ReportToTheirTrackerWhatTheyRecord) {
  const fs::path heard = root_ / "heard";
  EXPECT_EQ(train("run", {tracker("cat > " + heard.string()), "track.transcripts=2"}), RunEnd::Complete);
  const std::vector<Json> messages = recorded(heard);
  ASSERT_GT(messages.size(), 4u);
  const Json& start = messages.front();
  EXPECT_EQ(start.at("type"), "start");
  EXPECT_EQ(start.at("protocol"), 1);
  EXPECT_EQ(start.at("name"), "run");
  EXPECT_EQ(start.at("folder"), (root_ / "run").string());
  EXPECT_EQ(start.at("resumed"), false);
  EXPECT_EQ(start.at("config").at("train.groups_per_step"), 3);
  EXPECT_EQ(start.at("config").at("method.name"), "ppo");
  EXPECT_EQ(messages.back(), Json::parse(R"({"type": "end", "status": "complete"})"));

  std::map<std::pair<std::string, int>, Json> numbers;
  std::map<int, int> transcripts;
  std::vector<std::string> stages;
  for (const Json& message : messages) {
    if (message.at("type") == "stage") stages.push_back(message.at("stage"));
    if (message.at("type") == "transcript") ++transcripts[message.at("step")];
    if (message.at("type") == "metrics")
      numbers[{message.at("stage"), message.at("step")}].update(message.at("metrics"));
  }
  EXPECT_EQ(stages, (std::vector<std::string>{"sft", "train"}));
  EXPECT_EQ(transcripts, (std::map<int, int>{{1, 2}, {2, 2}, {3, 2}, {4, 2}}));
  int lines = 0;
  for (const std::string& stage : {std::string("sft"), std::string("train")}) {
    const auto text = read_file(root_ / "run" / (stage == "sft" ? "warm_start" : "") / "metrics.jsonl");
    for (const std::string_view view : split_lines(*text)) {
      ++lines;
      Json line = Json::parse(view);
      const Json& seen = numbers[{stage, line.at("step")}];
      line.erase("step");
      for (const auto& [name, value] : line.items()) EXPECT_EQ(seen.value(name, Json("missing")), value) << name;
    }
  }
  EXPECT_EQ(lines, 10);
  // The evaluations before and after training.
  EXPECT_TRUE(numbers.contains({"train", 0}));
  EXPECT_GT(numbers.at({"train", 4}).size(), numbers.at({"train", 3}).size());

  // A transcript is the row of the same trajectory.
  const auto rows = read_file(root_ / "run" / "rollouts" / "step_1.jsonl");
  int compared = 0;
  for (const Json& message : messages) {
    if (message.at("type") != "transcript" || message.at("step") != 1) continue;
    for (const std::string_view view : split_lines(*rows)) {
      const Json row = Json::parse(view);
      if (row.at("uid") != message.at("uid") || row.at("traj_id") != message.at("traj_id")) continue;
      for (const char* field : {"outcome", "success", "score", "gts", "measures", "input", "output"})
        EXPECT_EQ(message.at(field), row.at(field)) << field;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2);
}

TEST_F(Runs, ThatResumeReportTheSameIdAndTheRepeatedStepsToTheirTracker) {
  const std::string first = (root_ / "first").string(), second = (root_ / "second").string();
  EXPECT_EQ(train("run", {tracker("cat > " + first)}, stop_after("run", 8)), RunEnd::Interrupted);
  EXPECT_EQ(train("run", {tracker("cat > " + second), "resume=auto"}), RunEnd::Complete);
  const std::vector<Json> before = recorded(first), after = recorded(second);
  EXPECT_EQ(before.back().at("status"), "interrupted");
  EXPECT_EQ(after.front().at("run"), before.front().at("run"));
  EXPECT_EQ(after.front().at("resumed"), true);
  EXPECT_EQ(after.at(1), Json::parse(R"({"type": "stage", "stage": "train", "step": 2, "steps": 4})"));
  EXPECT_EQ(after.back().at("status"), "complete");
}

TEST_F(Runs, AreRefusedIfTheTrackerCannotBeStartedAndLeaveNoRun) {
  auto recipe = Recipe::parse(kTinyRecipe, "tiny.yaml",
                              {"run_folder=" + (root_ / "run").string(), "track.command=[/nowhere/tracker]"});
  ASSERT_TRUE(recipe.ok());
  std::ostringstream out;
  const auto end = run_training(*recipe, {.out = out});
  ASSERT_FALSE(end.ok());
  EXPECT_NE(end.error().message.find("track.command: cannot start \"/nowhere/tracker\""), std::string::npos);
  EXPECT_FALSE(RunFolder{root_ / "run"}.holds_run());
}

}  // namespace
}  // namespace carnot
