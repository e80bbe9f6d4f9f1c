// Rollouts, training, SFT and whole runs on a device that is not the CPU (testing/separate_device): every tensor is on
// its device, and the results are those of the same operators on the CPU.
#include "testing/separate_device/separate_device.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/engine/decoder_runner.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/run/run.h"
#include "carnot/core/train/sft.h"
#include "carnot/core/train/trainer.h"
#include "testing/packed_batch.h"
#include "tests/device/small_recipe.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

TEST(SeparateDevice, RefusesOperandsOnOtherDevices) {
  const at::Tensor here = at::ones({3}, testing::separate_device()), elsewhere = at::ones({3});
  EXPECT_EQ((here + 1).cpu().sum().item<float>(), 6);
  EXPECT_THROW(here + elsewhere, c10::Error);
  EXPECT_THROW(here.index_select(0, at::zeros({2}, at::kLong)), c10::Error);
  EXPECT_THROW(elsewhere.index_select(0, at::zeros({2}, at::kLong).to(here.device())), c10::Error);
}

TEST(SeparateDeviceDeathTest, DiesWhenItsMemoryIsRead) {
  const at::Tensor here = at::ones({3}, testing::separate_device());
  EXPECT_DEATH(
      {
        const volatile float* first = here.const_data_ptr<float>();
        std::exit(*first == 1 ? 0 : 1);
      },
      "");
}

double relative_error(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor a = found.detach().cpu().to(at::kDouble), b = expected.detach().to(at::kDouble);
  return ((a - b).abs().max() / (b.abs().max() + 1e-12)).item<double>();
}

class OnSeparateDevice : public ::testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {
 protected:
  Model make(at::Device device) const {
    const auto& [family, type] = GetParam();
    Model model(testing::small_decoder(family), 5, at::TensorOptions().dtype(type).device(device), 0.3);
    model.choose_kernels(KernelChoice::Portable);
    return model;
  }
  double tolerance() const {
    switch (std::get<1>(GetParam())) {
      case at::kDouble: return 1e-12;
      case at::kFloat: return 1e-5;
      default: return 0.03;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Models, OnSeparateDevice,
                         ::testing::Combine(::testing::ValuesIn(model_family_names()),
                                            ::testing::Values(at::kFloat, at::kDouble, at::kBFloat16)));

TEST_P(OnSeparateDevice, StatisticsAndGradientsEqualTheCpus) {
  Model cpu = make(at::kCPU), device = make(testing::separate_device());
  const testing::PackedBatch batch({20, 1, 13});
  std::vector<at::Tensor> losses;
  for (Model* model : {&cpu, &device}) {
    model->requires_grad(true);
    model->checkpoint_activations(true);
    losses.push_back(testing::loss_of(*model, batch));
    losses.back().backward();
  }
  EXPECT_EQ(losses[1].device(), testing::separate_device());
  EXPECT_LT(relative_error(losses[1], losses[0]), tolerance());
  const auto a = cpu.parameters(), b = device.parameters();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(b[i].tensor.grad().device(), testing::separate_device()) << a[i].name;
    EXPECT_LT(relative_error(b[i].tensor.grad(), a[i].tensor.grad()), 10 * tolerance()) << a[i].name;
  }
}

TEST_P(OnSeparateDevice, LogitsToSampleFromAreNotRounded) {
  const at::NoGradGuard no_grad;
  Model model = make(testing::separate_device());
  model.choose_kernels(KernelChoice::Own);  // own kernels do not exist here: LibTorch's are used, with logits as theirs
  const at::Tensor hidden = at::randn({3, 48}, model.options());
  const at::Tensor exact = at::matmul(hidden.cpu().to(at::kDouble), model.head().cpu().to(at::kDouble).t());
  EXPECT_LT(relative_error(model.logits(hidden), exact), 1e-6);
}

TEST_P(OnSeparateDevice, SequencesThatShareAPrefixAndPagedOnesEqualTheCpus) {
  const at::NoGradGuard no_grad;
  const Model cpu = make(at::kCPU), device = make(testing::separate_device());
  const at::Tensor tokens = at::arange(30, at::kLong) * 7 % 83;
  // The second continues from the first's twelve positions.
  const PackedAttention shared{.offsets = {0, 20, 30}, .parents = {-1, 0}, .past = {0, 12}};
  const at::Tensor positions = at::cat({at::arange(20, at::kLong), at::arange(12, 22, at::kLong)});
  EXPECT_LT(relative_error(device.hidden(tokens, positions, shared), cpu.hidden(tokens, positions, shared)),
            tolerance());
  for (const bool prompt : {true, false}) {
    std::vector<at::Tensor> found;
    for (const Model* model : {&cpu, &device}) {
      KvCache cache(model->config(), {.blocks = 6, .states = 3}, model->options());
      const std::vector<int> blocks[] = {{3, 1}, {5}};
      PagedAttention first{.cache = &cache}, second{.cache = &cache};
      first.sequences = {{.begin = 0, .end = 18, .past = 0, .blocks = blocks[0], .state = 0},
                         {.begin = 18, .end = 25, .past = 0, .blocks = blocks[1], .state = 1}};
      const at::Tensor both = at::cat({at::arange(18, at::kLong), at::arange(7, at::kLong)});
      found.push_back(model->hidden(tokens.slice(0, 0, 25), both, first));
      if (prompt) continue;
      cache.copy_block(5, 4);
      cache.copy_state(1, 2);
      const std::vector<int> copied{4};
      second.sequences = {{.begin = 0, .end = 1, .past = 18, .blocks = blocks[0], .state = 0},
                          {.begin = 1, .end = 2, .past = 7, .blocks = copied, .state = 2}};
      found.back() = model->hidden(tokens.slice(0, 25, 27), at::tensor({18, 7}, at::kLong), second);
    }
    EXPECT_LT(relative_error(found[1], found[0]), tolerance());
  }
}

constexpr double kLearningRate = 3e-3;  // of the recipe

/// Recipes cannot name such a device, so a test sets it.
Recipe recipe_on(at::Device device, std::vector<std::string> settings) {
  settings.push_back("threads=1");
  auto recipe = Recipe::parse(testing::kSmallRecipe, "test", settings);
  EXPECT_TRUE(recipe.ok()) << (recipe.ok() ? "" : recipe.error().message);
  recipe->run.device = device.str();
  return std::move(recipe).value();
}

/// The results of two steps.
struct Trained {
  std::vector<TokenId> tokens{};  ///< of the first step's rollouts
  std::map<std::string, double> metrics{};
  std::vector<at::Tensor> weights{};
};

Trained trained_on(at::Device device, const std::vector<std::string>& settings) {
  Recipe recipe = recipe_on(device, settings);
  EXPECT_TRUE(ModelBundle::prepare_device(recipe.run).ok());
  auto bundle = ModelBundle::make(recipe);
  EXPECT_TRUE(bundle.ok()) << (bundle.ok() ? "" : bundle.error().message);
  bundle->policy->choose_kernels(KernelChoice::Portable);
  bundle->add_companions(recipe);
  OneProcess alone;
  Trainer trainer(recipe, *bundle, alone);
  Trained out;
  for (int step = 0; step < 2; ++step) {
    const TrainingStep done = trainer.step(step).value();
    for (const auto& [name, value] : done.metrics)
      if (step == 0 && !name.starts_with("timing_s/") && !name.starts_with("perf/")) out.metrics[name] = value;
    for (const Group& group : done.groups)
      for (const Tree& tree : group.trees)
        for (const Turn& turn : tree.turns)
          if (step == 0) out.tokens.insert(out.tokens.end(), turn.tokens.begin(), turn.tokens.end());
  }
  for (const NamedTensor& weight : bundle->policy->trained()) out.weights.push_back(weight.tensor.detach());
  if (bundle->critic)
    for (const NamedTensor& weight : bundle->critic->parameters()) out.weights.push_back(weight.tensor.detach());
  return out;
}

class Training : public ::testing::TestWithParam<std::vector<std::string>> {};

INSTANTIATE_TEST_SUITE_P(
    Settings, Training,
    ::testing::Values(std::vector<std::string>{"method=grpo"}, std::vector<std::string>{"method=ppo"},
                      std::vector<std::string>{"method=grpo + aent", "train.shared_prefixes=once"},
                      std::vector<std::string>{"method=a2tgpo", "train.activation_checkpointing=true"},
                      std::vector<std::string>{"method=arpo", "train.virtual_shards=2"},
                      std::vector<std::string>{"method=grpo", "lora.rank=4"},
                      std::vector<std::string>{"method=grpo", "dtype=bfloat16"},
                      std::vector<std::string>{"method=grpo", "dtype=bfloat16", "train.master_weights=false",
                                               "train.moments=bfloat16"}));

TEST_P(Training, OnTheDeviceEqualsThatOnTheCpu) {
  const Trained cpu = trained_on(at::kCPU, GetParam()), device = trained_on(testing::separate_device(), GetParam());
  EXPECT_FALSE(cpu.tokens.empty());
  EXPECT_EQ(device.tokens, cpu.tokens);
  ASSERT_EQ(device.metrics.size(), cpu.metrics.size());
  ASSERT_EQ(device.weights.size(), cpu.weights.size());
  // Metrics of a step's second update follow weights that the first one rounded to bfloat16.
  const bool rounded = std::ranges::count(GetParam(), "train.master_weights=false") > 0;
  for (const auto& [name, value] : cpu.metrics)
    EXPECT_NEAR(device.metrics.at(name), value, (rounded ? 1e-3 : 1e-4) * (1 + std::abs(value))) << name;
  for (std::size_t i = 0; i < cpu.weights.size(); ++i) {
    EXPECT_EQ(device.weights[i].device(), testing::separate_device());
    // If a gradient is nearly zero, AdamW's first steps depend on little but its sign, which rounding to bfloat16
    // decides.
    if (cpu.weights[i].scalar_type() == at::kFloat) {
      EXPECT_LT(relative_error(device.weights[i], cpu.weights[i]), 0.02) << i;
    } else {
      EXPECT_LT((device.weights[i].cpu() - cpu.weights[i]).abs().max().item<double>(), 4 * kLearningRate) << i;
    }
  }
}

TEST(RunOnSeparateDevice, WithWarmStartEvaluationAndCheckpointsCompletes) {
  const fs::path folder = fs::temp_directory_path() / ("carnot_separate_device_test_" + std::to_string(::getpid()));
  Recipe recipe = recipe_on(testing::separate_device(), {"method=ppo", "run_folder=" + folder.string()});
  std::ostringstream out;
  const auto end = run_training(recipe, {.out = out});
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(*end, RunEnd::Complete);
  const auto lines = read_file(folder / "metrics.jsonl");
  ASSERT_TRUE(lines.ok());
  EXPECT_EQ(split_lines(*lines).size(), 2u);
  for (const std::string_view line : split_lines(*lines))
    EXPECT_GT(Json::parse(line).at("actor/grad_norm").get<double>(), 0);
  // The CPU can read the checkpoint.
  EXPECT_TRUE(load_model(folder / "checkpoints" / "global_step_2", at::TensorOptions(at::kFloat)).ok());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace carnot
