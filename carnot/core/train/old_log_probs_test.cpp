// Steps with `rollout.old_log_probs: auto` give the same results as with `recompute`, bit for bit.
#include "carnot/core/train/old_log_probs.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "carnot/core/data/group_bytes.h"
#include "carnot/core/rollout/measure.h"
#include "carnot/core/train/trainer.h"

namespace carnot {
namespace {

constexpr const char* kRecipe = R"(
threads: 1
env: {name: search_qa, train_worlds: 2, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 48, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}
objective: {entropy_coefficient: 0.01}
rollout: {group_size: 2, max_context_tokens: 320, max_response_tokens: 24}
train: {steps: 2, groups_per_step: 4, learning_rate: 3e-3, mini_batches: 2, micro_batch_tokens: 300}
)";

Recipe recipe_with(std::vector<std::string> settings, const std::string& old_log_probs) {
  settings.push_back("rollout.old_log_probs=" + old_log_probs);
  auto recipe = Recipe::parse(kRecipe, "test", settings);
  EXPECT_TRUE(recipe.ok()) << (recipe.ok() ? "" : recipe.error().message);
  return std::move(recipe).value();
}

/// What a test does to the rollouts before the trainer gets them.
using Change = std::function<void(std::vector<Group>&)>;

const Change kUnchanged = [](std::vector<Group>&) {};

/// What two steps leave, without times.
struct Trained {
  std::string groups{};
  std::map<std::string, double> metrics{};  ///< by step and name
  std::vector<at::Tensor> weights{};
  std::vector<double> reused{};  ///< by step
};

void add_step(TrainingStep step, Trained& trained) {
  const std::string prefix = std::to_string(trained.reused.size()) + "/";
  for (const auto& [name, value] : step.metrics)
    if (name == "rollout_corr/reused")
      trained.reused.push_back(value);
    else if (!name.starts_with("timing_s/") && !name.starts_with("perf/"))
      trained.metrics[prefix + name] = value;
  for (Group& group : step.groups)
    for (Tree& tree : group.trees)
      for (Turn& turn : tree.turns) turn.latency_ms = 0;
  trained.groups += bytes_of_groups(step.groups);
}

Trained trained_with(const std::vector<std::string>& settings, const std::string& old_log_probs,
                     const Change& change = kUnchanged) {
  Recipe recipe = recipe_with(settings, old_log_probs);
  EXPECT_TRUE(ModelBundle::prepare_device(recipe.run).ok());
  ModelBundle bundle = ModelBundle::make(recipe).value();
  bundle.add_companions(recipe);
  OneProcess alone;
  Trainer trainer(recipe, bundle, alone);
  trainer.roll_out_elsewhere([&](const StepTasks& tasks, const RolloutEvents& events) {
    Rollout rollout = roll_out(trainer.engine(), *bundle.chat, *recipe.method.branch, rollout_tasks(recipe, tasks),
                               recipe.rollout_options(), tasks.key, events);
    change(rollout.groups);
    return rollout;
  });
  Trained trained;
  for (int step = 0; step < 2; ++step) add_step(trainer.step(step).value(), trained);
  for (const NamedTensor& weight : bundle.policy->trained()) trained.weights.push_back(weight.tensor.detach().clone());
  return trained;
}

void expect_same(const Trained& a, const Trained& b) {
  EXPECT_TRUE(a.groups == b.groups);
  EXPECT_EQ(a.metrics, b.metrics);
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (std::size_t i = 0; i < a.weights.size(); ++i) EXPECT_TRUE(at::equal(a.weights[i], b.weights[i])) << i;
}

/// As other weights or kernels would have measured them.
void disturb(Group& group) {
  for (Tree& tree : group.trees)
    for (std::size_t t = 0; t < tree.turns.size(); ++t)
      for (const Column column : {Column::LogProbRollout, Column::EntropyRollout})
        for (double& value :
             tree.columns.edit(column, static_cast<int>(t), static_cast<int>(tree.turns[t].tokens.size())))
          value += 1e-3;
}

using Settings = std::vector<std::string>;

class OldLogProbsOf : public ::testing::TestWithParam<Settings> {};

INSTANTIATE_TEST_SUITE_P(Recipes, OldLogProbsOf,
                         ::testing::Values(Settings{}, Settings{"rollout.temperature=0.6"},
                                           Settings{"rollout.top_k=9", "rollout.top_p=0.8"}, Settings{"dtype=bfloat16"},
                                           Settings{"lora.rank=4"}, Settings{"method=arpo"}, Settings{"method=dapo"},
                                           Settings{"train.epochs=2", "train.shared_prefixes=repeated"}));

TEST_P(OldLogProbsOf, TheRolloutEqualAPassBitForBit) {
  const Trained with_auto = trained_with(GetParam(), "auto"), recomputed = trained_with(GetParam(), "recompute");
  EXPECT_EQ(with_auto.reused, (std::vector<double>{1, 1}));
  EXPECT_EQ(recomputed.reused, (std::vector<double>{0, 0}));
  expect_same(with_auto, recomputed);
}

TEST(OldLogProbs, OfLeavesThatDoNotCountAreMissing) {
  const Change lose = [](std::vector<Group>& groups) {
    groups[0].trees[1].leaves[0].outcome = Outcome::InfraFailed;
    groups[2].trees[0].leaves[0].dropped = true;
  };
  const Trained with_auto = trained_with({}, "auto", lose);
  EXPECT_EQ(with_auto.reused[0], 1);
  expect_same(with_auto, trained_with({}, "recompute", lose));
}

TEST(OldLogProbs, OfWhatOlderWeightsSampledComeFromAPass) {
  const Change age = [](std::vector<Group>& groups) {
    for (std::size_t g = 0; g < groups.size(); g += 2) {
      disturb(groups[g]);
      --groups[g].trees.back().turns.back().policy_version;
    }
  };
  const Trained with_auto = trained_with({}, "auto", age);
  EXPECT_EQ(with_auto.reused, (std::vector<double>{0.5, 0.5}));
  expect_same(with_auto, trained_with({}, "recompute", age));
  EXPECT_FALSE(with_auto.groups == trained_with({}, "rollout", age).groups);
}

// Synchronously they are measured again where they come in
// (Workers.WithOtherKernelsAreDetectedAndTheirSamplesMeasuredAgain).
TEST(OldLogProbs, OfWhatOtherKernelsSampledAheadComeFromAPass) {
  const Change sample_elsewhere = [](std::vector<Group>& groups) { disturb(groups[1]); };
  const Settings ahead = {"rollout.workers=nats://127.0.0.1:4222", "rollout.max_staleness=1",
                          "rollout.other_kernels=recompute"};
  const Trained with_auto = trained_with(ahead, "auto", sample_elsewhere);
  EXPECT_EQ(with_auto.reused, (std::vector<double>{0, 0}));
  expect_same(with_auto, trained_with(ahead, "recompute", sample_elsewhere));
}

TEST(OldLogProbs, OfKernelsWhoseBitsDependOnTheBatchComeFromAPass) {
  Recipe recipe = recipe_with({}, "auto");
  const ModelBundle bundle = ModelBundle::make(recipe).value();
  const Group group{};
  EXPECT_TRUE((OldLogProbs{recipe.rollout, *bundle.policy, 0}.are_reused(group)));
  bundle.policy->choose_kernels(KernelChoice::Portable);
  EXPECT_FALSE((OldLogProbs{recipe.rollout, *bundle.policy, 0}.are_reused(group)));
}

}  // namespace
}  // namespace carnot
