#include "carnot/core/run/memory_budget.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "carnot/core/collectives/sharded_optimizer.h"
#include "carnot/core/nn/kv_cache.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/optim/local_optimizer.h"
#include "carnot/core/optim/rules.h"
#include "carnot/core/run/memory_advice.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/shard_work.h"
#include "testing/counting_allocator.h"
#include "testing/packed_batch.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kMegabyte = 1 << 20;

MemorySettings settings_of(int rank, bool checkpointing, const std::string& dtype = "float32",
                           const std::string& family = "qwen2") {
  MemorySettings settings;
  settings.run.dtype = dtype;
  settings.model = {.family = family,
                    .vocab_size = 83,
                    .hidden_size = 64,
                    .intermediate_size = 160,
                    .num_layers = 6,
                    .num_heads = 4,
                    .num_kv_heads = 2,
                    .head_dim = 16};
  testing::add_experts(settings.model);
  settings.lora.rank = rank;
  settings.train.activation_checkpointing = checkpointing;
  settings.program_bytes = 100 * kMegabyte;
  return settings;
}

std::int64_t part_of(const MemorySettings& settings, const std::string& name) {
  for (const BudgetPart& part : memory_budget(settings))
    if (part.name == name) return part.bytes;
  return 0;
}

/// Bytes that a real forward pass keeps, and the most that its backward pass adds.
ActivationBytes measured(const MemorySettings& settings, int sequences, int length) {
  const auto type = settings.run.dtype == "bfloat16" ? at::kBFloat16 : at::kFloat;
  Model model(settings.model, 5, at::TensorOptions().dtype(type));
  if (settings.lora.rank > 0) model.add_adapters(settings.lora, 1);
  model.checkpoint_activations(settings.train.activation_checkpointing);
  model.requires_grad(true);
  const testing::PackedBatch batch(std::vector<int>(sequences, length));
  testing::loss_of(model, batch).backward();  // packed weights and gradients are there from now on
  testing::CountingAllocator allocator;
  const at::Tensor loss = testing::loss_of(model, batch);
  ActivationBytes bytes{.kept = allocator.live()};
  allocator.forget_peak();
  loss.backward();
  bytes.passing = allocator.peak() - bytes.kept;
  return bytes;
}

/// Every family in float32, one with an MLP and one with experts in bfloat16.
std::vector<std::pair<std::string, std::string>> families_and_types() {
  std::vector<std::pair<std::string, std::string>> all{{"qwen2", "bfloat16"}, {"olmoe", "bfloat16"}};
  for (const std::string& family : model_family_names()) all.emplace_back(family, "float32");
  return all;
}

TEST(MemoryBudget, CountsTheActivationsThatAForwardPassKeeps) {
  for (const auto& [family, dtype] : families_and_types())
    for (const int rank : {0, 8})
      for (const bool checkpointing : {false, true}) {
        const MemorySettings settings = settings_of(rank, checkpointing, dtype, family);
        const ActivationBytes real = measured(settings, 4, 200), predicted = activation_bytes(settings, 800, 200);
        const std::string what =
            family + ", " + dtype + ", rank " + std::to_string(rank) + (checkpointing ? ", checkpointing" : "");
        EXPECT_NEAR(static_cast<double>(predicted.kept) / static_cast<double>(real.kept), 1, 0.05) << what;
        const auto peak = static_cast<double>(real.kept + real.passing);
        EXPECT_NEAR(static_cast<double>(predicted.kept + predicted.passing) / peak, 1, 0.1) << what;
      }
}

TEST(MemoryBudget, CountsTheCacheThatRolloutsGet) {
  for (const auto& [family, dtype] : families_and_types()) {
    MemorySettings settings = settings_of(0, false, dtype, family);
    settings.model = testing::small_decoder(family);
    settings.stage = MemoryStage::Rollout;
    const std::int64_t trajectories = step_trajectories<std::int64_t>(settings.train, settings.rollout);
    const CacheSize size{
        .blocks = static_cast<int>(cache_blocks(settings.rollout, trajectories)),
        .states = static_cast<int>(cache_states(settings.rollout, trajectories)),
        .window_blocks = static_cast<int>(cache_window_blocks(settings.rollout, settings.model, trajectories))};
    EXPECT_EQ(size.has_window(), settings.model.has_windows()) << family;
    const KvCache cache(settings.model, size, at::TensorOptions(dtype == "float32" ? at::kFloat : at::kBFloat16));
    EXPECT_EQ(part_of(settings, "KV cache"), cache.bytes()) << family << ", " << dtype;
  }
}

TEST(MemoryBudget, CountsAdaptersAndFrozenWeightsApart) {
  MemorySettings settings = settings_of(0, false);
  settings.reference = true;
  const auto bytes = [&](const std::string& name) {
    for (const BudgetPart& part : memory_budget(settings))
      if (part.name == name) return part.bytes;
    return std::int64_t{-1};
  };
  const std::int64_t parameters = settings.model.num_parameters();
  EXPECT_EQ(bytes("weights"), 2 * 4 * parameters);
  EXPECT_EQ(bytes("optimizer"), 8 * parameters);
  settings.lora.rank = 8;
  Model model(settings.model, 1, at::TensorOptions(at::kFloat));
  model.add_adapters(settings.lora, 1);
  std::int64_t adapters = 0;
  for (const NamedTensor& adapter : model.adapters()) adapters += adapter.tensor.numel();
  EXPECT_EQ(bytes("weights"), 4 * (parameters + 2 * adapters));
  EXPECT_EQ(bytes("optimizer"), 8 * adapters);
  settings.run.dtype = "bfloat16";
  EXPECT_EQ(bytes("weights"), 2 * (parameters + 2 * adapters));
  EXPECT_EQ(bytes("optimizer"), 10 * adapters) << "two moments in float32, and the other halves of master weights";
}

TEST(MemoryBudget, CountsWhatEachOptimizerKeeps) {
  for (const std::string dtype : {"float32", "bfloat16"})
    for (const int rank : {0, 8})
      for (const OptimizerRow& row : optimizer_rows())
        for (const std::string moments : {"float32", "bfloat16"}) {
          MemorySettings settings = settings_of(rank, false);
          settings.run.dtype = dtype;
          settings.train.optimizer.optimizer = row.name;
          settings.train.optimizer.moments = moments;
          Model model(settings.model, 1, at::TensorOptions(dtype == "bfloat16" ? at::kBFloat16 : at::kFloat));
          if (rank > 0) model.add_adapters(settings.lora, 1);
          LocalOptimizer optimizer(optimizer_weights(model.trained()), settings.train.optimizer);
          std::int64_t bytes = 0;
          for (const auto& [name, tensor] : optimizer.state()) bytes += static_cast<std::int64_t>(tensor.nbytes());
          EXPECT_EQ(part_of(settings, "optimizer"), bytes) << row.name << " " << dtype << " " << rank << " " << moments;
        }
}

TEST(MemoryBudget, CountsWhatAnEvaluationHolds) {
  MemorySettings settings = settings_of(0, false);
  settings.rollout.options.episode.max_context_tokens = 512;
  settings.evaluation = {.tasks = 100, .samples = 1};
  const std::int64_t peak = predicted_peak(settings);
  settings.evaluation.samples = 1000;
  const std::int64_t tokens = 100 * 1000 * 512;
  // Tokens and two numbers for each, of the evaluations before and after, and the file of one.
  EXPECT_GT(predicted_peak(settings) - peak, tokens * (2 * 20 + 40));
  settings.stage = MemoryStage::Rollout;
  const std::int64_t rollout = predicted_peak(settings);
  settings.evaluation.samples = 1;
  EXPECT_EQ(predicted_peak(settings), rollout) << "which evaluates nothing";
}

TEST(MemoryBudget, CountsTheWarmStartsDemonstrationsAndUpdates) {
  MemorySettings settings = settings_of(0, false);
  settings.evaluation = {.tasks = 1, .samples = 1};
  settings.rollout.options.episode.max_context_tokens = 64;
  settings.train.micro_batch_tokens = 1 << 20;
  const std::int64_t without = predicted_peak(settings);
  settings.sft = {.steps = 10, .batch_tokens = 1 << 20};
  const std::int64_t with = predicted_peak(settings);
  EXPECT_GT(with - without, activation_bytes(settings, 1 << 19, 64).kept) << "rows of the SFT stage's micro-batches";
  settings.train.micro_batch_tokens = 4096;
  const std::int64_t in_small_batches = predicted_peak(settings);
  settings.sft.batch_tokens = 100 << 20;
  EXPECT_GT(predicted_peak(settings) - in_small_batches, std::int64_t{99 << 20} * 40) << "tokens, targets and weights";
}

TEST(MemoryBudget, AnAbsurdSettingIsTooLargeAndNothingElse) {
  const auto expect_huge = [](const std::string& what, const auto& change) {
    MemorySettings settings = settings_of(0, false);
    change(settings);
    EXPECT_GT(predicted_peak(settings), std::int64_t{1} << 50) << what;
    const Status fits = check_memory(settings, {.bytes = std::int64_t{1} << 40, .source = "here"});
    ASSERT_FALSE(fits.ok()) << what;
    EXPECT_THAT(fits.error().message, Not(HasSubstr("-"))) << what;
    for (const BudgetPart& part : memory_budget(settings)) EXPECT_GE(part.bytes, 0) << what << ", " << part.name;
  };
  constexpr int kLarge = 1'000'000'000;
  expect_huge("model", [](MemorySettings& s) {
    s.model.hidden_size = s.model.intermediate_size = s.model.num_layers = s.model.vocab_size = kLarge;
  });
  expect_huge("context", [](MemorySettings& s) {
    s.rollout.options.episode.max_context_tokens = s.train.groups_per_step = s.rollout.options.group_size = kLarge;
  });
  expect_huge("evaluation", [](MemorySettings& s) { s.evaluation.tasks = s.evaluation.samples = kLarge; });
}

TEST(MemoryBudget, TableEndsWithTheSum) {
  EXPECT_THAT(budget_table({{"weights", 3 * kMegabyte, "few"}, {"optimizer", kMegabyte / 2, "less"}}),
              HasSubstr("3.0 MiB  weights (few)\n         0.5 MiB  optimizer (less)\n         3.5 MiB  in all\n"));
}

/// A model of 100 M parameters whose activations are the largest part.
MemorySettings large() {
  MemorySettings settings = settings_of(0, false);
  settings.model = {.vocab_size = 20000,
                    .hidden_size = 768,
                    .intermediate_size = 2048,
                    .num_layers = 12,
                    .num_heads = 12,
                    .num_kv_heads = 4,
                    .head_dim = 64};
  settings.train.micro_batch_tokens = 16384;
  settings.rollout.options.episode.max_context_tokens = 1024;
  return settings;
}

TEST(MemoryAdvice, LetsARunStartThatFitsOrWhereNothingIsKnown) {
  EXPECT_TRUE(check_memory(large(), {.bytes = predicted_peak(large()), .source = ""}).ok());
  EXPECT_TRUE(check_memory(large(), {}).ok());
}

TEST(MemoryAdvice, NamesEachSettingThatIsEnoughAloneAndItsValue) {
  const std::int64_t limit = predicted_peak(large()) * 3 / 4;
  const Status refused = check_memory(large(), {.bytes = limit, .source = "of this machine"});
  ASSERT_FALSE(refused.ok());
  const std::string& message = refused.error().message;
  EXPECT_THAT(message, HasSubstr("of this machine. Any one of these is enough:"));
  EXPECT_THAT(message, HasSubstr("\n  train.activation_checkpointing=true: "));
  EXPECT_THAT(message, Not(HasSubstr("rollout.log_prob_tokens"))) << "which would change nothing";
  const std::string key = "\n  train.micro_batch_tokens=";
  const std::size_t at = message.find(key);
  ASSERT_NE(at, std::string::npos) << message;
  // What is advised fits, and a little more would not.
  MemorySettings advised = large();
  advised.train.micro_batch_tokens = std::stoi(message.substr(at + key.size()));
  EXPECT_LE(predicted_peak(advised), limit);
  advised.train.micro_batch_tokens += 16;
  EXPECT_GT(predicted_peak(advised), limit);
}

TEST(MemoryAdvice, JoinsSettingsWhereNoneIsEnoughAloneAndSaysWhenNothingHelps) {
  const Status joint = check_memory(large(), {.bytes = 1700 * kMegabyte, .source = "of this machine"});
  ASSERT_FALSE(joint.ok());
  EXPECT_THAT(joint.error().message, HasSubstr("Together these would help:\n  train.activation_checkpointing=true"));
  EXPECT_THAT(joint.error().message, Not(HasSubstr("still is too much")));
  const Status hopeless = check_memory(large(), {.bytes = 50 * kMegabyte, .source = "of this machine"});
  EXPECT_THAT(hopeless.error().message, HasSubstr("still is too much; a smaller model or a shorter context is left"));
}

TEST(MemoryBudget, OfARankCountsTheExchangeAndItsOwnShareOfTheRollouts) {
  MemorySettings alone = settings_of(0, false);
  alone.train.groups_per_step = 8;
  alone.evaluation = {.before_training = false, .tasks = 1};
  EXPECT_EQ(part_of(alone, "gradients of the own slice") + part_of(alone, "travelling gradients"), 0);
  MemorySettings one_of_four = alone;
  one_of_four.ranks = 4;
  const std::int64_t parameters = alone.model.num_parameters();
  EXPECT_EQ(part_of(one_of_four, "gradients"), 4 * parameters) << "of one shard, until they leave";
  EXPECT_EQ(part_of(one_of_four, "gradients of the own slice"), 4 * ((parameters + 3) / 4));
  EXPECT_EQ(part_of(one_of_four, "travelling gradients"), 2 * 4 * parameters) << "a small model is one bucket";
  EXPECT_LT(part_of(one_of_four, "KV cache"), part_of(alone, "KV cache"));
  EXPECT_EQ(part_of(one_of_four, "optimizer"), (parameters + 3) / 4 * 8);
  MemorySettings shards = alone;
  shards.train.virtual_shards = 4;
  shards.rollout.cache_tokens = 4096;  // the update is the peak
  EXPECT_EQ(part_of(shards, "gradients of the own slice"), 4 * parameters);
  EXPECT_EQ(part_of(shards, "travelling gradients"), 4 * parameters);
  // A model whose weights are more than its activations: four buckets of a million numbers each way.
  MemorySettings large_model = one_of_four;
  large_model.model.hidden_size = 512;
  large_model.model.intermediate_size = 2048;
  large_model.rollout.options.episode.max_context_tokens = 16;
  large_model.train.micro_batch_tokens = 16;
  large_model.train.optimizer.moments = "bfloat16";
  EXPECT_EQ(part_of(large_model, "travelling gradients"), 4 * 2 * (std::int64_t{4} << 20));
  large_model.train.optimizer.moments = "float32";
  const std::int64_t row = 4 * large_model.model.num_parameters();
  EXPECT_EQ(part_of(large_model, "gathered optimizer"), 2 * row + 4 * 2 * (std::int64_t{4} << 20))
      << "the first rank's, for a checkpoint";
}

TEST(MemoryBudget, CountsWhatARankHoldsThatComputesSeveralShards) {
  constexpr std::int64_t kNumbers = 3 << 20;
  OneProcess alone;
  const testing::CountingAllocator allocator;
  std::vector<at::Tensor> weights;
  std::vector<Weight> parameters;
  for (int i = 0; i < 3; ++i) {
    weights.push_back(at::zeros({kNumbers / 3}, at::kFloat));
    parameters.push_back({.name = "weight." + std::to_string(i), .values = weights.back()});
  }
  GradientExchange exchange(alone, weights, 4);
  ShardedOptimizer optimizer(alone, exchange, parameters, {});
  // Weights and two moments last.
  EXPECT_EQ(allocator.live(), 3 * 4 * kNumbers);
  const auto compute = [&] {
    for (at::Tensor& weight : weights) weight.mutable_grad() = at::ones({kNumbers / 3}, at::kFloat);
  };
  MemorySettings settings = settings_of(0, false);
  settings.train.virtual_shards = 4;
  settings.train.groups_per_step = 1;
  settings.rollout.options.group_size = 1;
  settings.rollout.options.episode.max_context_tokens = 1;
  settings.train.micro_batch_tokens = 1;
  settings.model.hidden_size = 256;
  const std::int64_t row = 4 * settings.model.num_parameters();
  ASSERT_EQ(part_of(settings, "gradients"), row) << "an update is the largest phase";
  for (int round = 0; round < 4; ++round) {
    const std::int64_t before = allocator.live();
    // The sum of the shards before, and the last bucket.
    EXPECT_EQ(before, (round == 0 ? 3 : 4) * 4 * kNumbers + (round == 0 ? 0 : 4 << 20));
    EXPECT_EQ(part_of(settings, "gradients of the own slice"), row);
    compute();
    exchange.add_round("test");
  }
  optimizer.step(1e-3);
  EXPECT_EQ(allocator.live(), 3 * 4 * kNumbers);
  const auto state = optimizer.state();
  EXPECT_EQ(allocator.live(), 5 * 4 * kNumbers) << "both moments once more, for a checkpoint";
}

}  // namespace
}  // namespace carnot
