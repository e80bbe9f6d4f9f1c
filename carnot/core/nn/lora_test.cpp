#include "carnot/core/nn/lora.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/thread_pool.h"
#include "carnot/core/nn/kv_cache.h"
#include "testing/packed_batch.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

/// Adapters after training: B is not zero.
Model adapted_model(const std::string& family, at::ScalarType type, LoraOptions lora = {.rank = 5, .alpha = 7}) {
  Model model(small_decoder(family), 5, at::TensorOptions().dtype(type), 0.3);
  model.add_adapters(lora, 11);
  const at::NoGradGuard no_grad;
  RandomStream stream(12);
  for (const NamedTensor& adapter : model.adapters()) {
    at::Tensor noise = at::empty(adapter.tensor.sizes(), at::kDouble);
    for (std::int64_t i = 0; i < noise.numel(); ++i) noise.data_ptr<double>()[i] = 0.2 * stream.normal();
    adapter.tensor.add_(noise);
  }
  return model;
}

class Lora : public ::testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {
 protected:
  Model make(LoraOptions lora = {.rank = 5, .alpha = 7}) const {
    return adapted_model(std::get<0>(GetParam()), std::get<1>(GetParam()), std::move(lora));
  }
  double tolerance() const { return std::get<1>(GetParam()) == at::kFloat ? 1e-5 : 1e-12; }
};
INSTANTIATE_TEST_SUITE_P(Families, Lora,
                         ::testing::Combine(::testing::Values("qwen2", "qwen3", "qwen3_moe"),
                                            ::testing::Values(at::kFloat, at::kDouble, at::kBFloat16)));
class WideLora : public Lora {};
INSTANTIATE_TEST_SUITE_P(Families, WideLora,
                         ::testing::Combine(::testing::Values("qwen2", "qwen3", "qwen3_moe"),
                                            ::testing::Values(at::kFloat, at::kDouble)));

TEST_P(Lora, FreshAdaptersChangeNoBit) {
  Model model(small_decoder(std::get<0>(GetParam())), 5, at::TensorOptions().dtype(std::get<1>(GetParam())), 0.3);
  const at::NoGradGuard no_grad;
  const PackedBatch batch({3, 40});
  const at::Tensor before = batch.hidden(model);
  model.add_adapters({.rank = 4}, 1);
  EXPECT_TRUE(at::equal(batch.hidden(model), before));
  EXPECT_TRUE(at::equal(batch.hidden(model.merged()), before));
}

TEST_P(WideLora, EqualsTheModelItMergesInto) {
  for (const auto& targets : std::vector<std::vector<std::string>>{
           LoraOptions{}.targets, {"q_proj", "v_proj"}, {"up_proj"}, {"k_proj", "down_proj"}}) {
    const Model model = make({.rank = 5, .alpha = 7, .targets = targets});
    const Model merged = model.merged();
    EXPECT_FALSE(merged.has_adapters());
    EXPECT_TRUE(model.has_adapters());
    const at::NoGradGuard no_grad;
    const PackedBatch batch({1, 7, 40});
    EXPECT_GT(relative_error(batch.hidden(model), batch.hidden(Model(model.config(), 5, model.options(), 0.3))), 1e-2);
    EXPECT_LT(relative_error(batch.hidden(model), batch.hidden(merged)), tolerance());
    EXPECT_LT(relative_error(loss_of(model, batch), loss_of(merged, batch)), tolerance());
  }
}

TEST_P(WideLora, OwnKernelsEqualLibTorchsInValuesAndGradients) {
  for (const auto& targets : std::vector<std::vector<std::string>>{LoraOptions{}.targets, {"v_proj", "up_proj"}}) {
    Model own = make({.rank = 5, .alpha = 7, .targets = targets}), portable = own.clone();
    portable.choose_kernels(KernelChoice::Portable);
    const PackedBatch batch({1, 7, 40, 19});
    EXPECT_LT(relative_error(loss_of(own, batch), loss_of(portable, batch)), tolerance());
    const auto a = gradients_of(own, batch), b = gradients_of(portable, batch);
    const auto names = own.adapters();
    ASSERT_EQ(a.size(), names.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_LT(relative_error(a[i], b[i]), 10 * tolerance()) << names[i].name;
  }
}

TEST_P(Lora, PackedRowsEqualSequencesAloneAndDecodedOnesBitForBit) {
  const Model model = make();
  const at::NoGradGuard no_grad;
  const PackedBatch batch({5, 33});
  const at::Tensor together = batch.hidden(model);
  const at::Tensor alone = model.hidden(batch.tokens_T.slice(0, 5, 38), batch.positions_T.slice(0, 5, 38),
                                        PackedAttention{.offsets = {0, 33}});
  EXPECT_TRUE(at::equal(alone, together.slice(0, 5, 38)));
  KvCache cache(model.config(), {.blocks = 3, .states = 1}, model.options());
  const std::vector<int> blocks{2, 0, 1};
  int past = 0;
  for (int rows : {18, 1, 1, 13}) {
    const PagedAttention plan{.cache = &cache,
                              .sequences = {{.begin = 0, .end = rows, .past = past, .blocks = blocks, .state = 0}}};
    const int first = 5 + past;
    const at::Tensor hidden = model.hidden(batch.tokens_T.slice(0, first, first + rows),
                                           batch.positions_T.slice(0, first, first + rows), plan);
    EXPECT_TRUE(at::equal(hidden, together.slice(0, first, first + rows))) << "after " << past;
    past += rows;
  }
}

TEST_P(Lora, OneThreadEqualsThreeBitForBitInGradients) {
  Model model = make();
  const PackedBatch batch({30, 64, 9, 250});
  const auto one = gradients_of(model, batch);
  set_num_threads(3);
  const auto three = gradients_of(model, batch);
  set_num_threads(1);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << i;
}

TEST(LoraGradients, OfBothMatricesMatchFiniteDifferences) {
  at::set_num_threads(1);  // LibTorch's threads spin, which is slow next to other programs
  for (KernelChoice kernels : {KernelChoice::Own, KernelChoice::Portable}) {
    Model model = adapted_model("qwen2", at::kDouble);
    model.choose_kernels(kernels);
    const PackedBatch batch({4, 9});
    const auto gradients = gradients_of(model, batch);
    const auto adapters = model.adapters();
    ASSERT_EQ(adapters.size(), 28u);
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < adapters.size(); ++i) {
      const auto loss_at = [&](std::int64_t element, double value) {
        adapters[i].tensor.view(-1)[element].fill_(value);  // an operator changes the weight: the packed copy must
                                                            // follow
        return loss_of(model, batch).item<double>();
      };
      for (std::int64_t element : {std::int64_t{0}, adapters[i].tensor.numel() - 1}) {
        const double keep = adapters[i].tensor.data_ptr<double>()[element];
        const double slope = (loss_at(element, keep + 1e-6) - loss_at(element, keep - 1e-6)) / 2e-6;
        loss_at(element, keep);
        EXPECT_NEAR(gradients[i].data_ptr<double>()[element], slope, 2e-6 * std::max(1.0, std::abs(slope)))
            << adapters[i].name;
      }
    }
  }
}

TEST(LoraGradients, ReachTheAdaptersAlone) {
  for (KernelChoice kernels : {KernelChoice::Own, KernelChoice::Portable}) {
    Model model = adapted_model("qwen3", at::kFloat);
    model.choose_kernels(kernels);
    model.requires_grad(true);
    loss_of(model, PackedBatch({20})).backward();
    for (const NamedTensor& weight : model.parameters()) EXPECT_FALSE(weight.tensor.grad().defined()) << weight.name;
    for (const NamedTensor& adapter : model.adapters()) EXPECT_TRUE(adapter.tensor.grad().defined()) << adapter.name;
  }
}

TEST(LoraAdapters, AreNamedAsPeftNamesThemAndDrawnAsPeftDrawsThem) {
  Model model(small_decoder("qwen2"), 5, at::TensorOptions().dtype(at::kDouble));
  model.add_adapters({.rank = 64, .targets = {"q_proj", "down_proj"}}, 1);
  const auto adapters = model.adapters();
  std::vector<std::string> names;
  for (const NamedTensor& adapter : adapters) names.push_back(adapter.name);
  ASSERT_THAT(names,
              ::testing::ElementsAre(
                  "model.layers.0.self_attn.q_proj.lora_A.weight", "model.layers.0.self_attn.q_proj.lora_B.weight",
                  "model.layers.0.mlp.down_proj.lora_A.weight", "model.layers.0.mlp.down_proj.lora_B.weight",
                  "model.layers.1.self_attn.q_proj.lora_A.weight", "model.layers.1.self_attn.q_proj.lora_B.weight",
                  "model.layers.1.mlp.down_proj.lora_A.weight", "model.layers.1.mlp.down_proj.lora_B.weight"));
  // kaiming_uniform_ with a = sqrt(5): uniform within 1 / sqrt(inputs), of variance 1 / (3 inputs).
  const at::Tensor& a = adapters[2].tensor;
  EXPECT_EQ(a.sizes(), at::IntArrayRef({64, 80}));
  EXPECT_LE(a.abs().max().item<double>(), 1 / std::sqrt(80.0));
  EXPECT_NEAR(a.pow(2).mean().item<double>() * 3 * 80, 1, 0.05);
  EXPECT_FALSE(at::equal(a, adapters[6].tensor));
  EXPECT_EQ(adapters[3].tensor.abs().max().item<double>(), 0);
}

TEST(LoraAdapters, OfExpertsHaveTheNamesOfTheirProjections) {
  Model model(small_decoder("qwen3_moe"), 5, at::TensorOptions().dtype(at::kDouble));
  model.add_adapters({.rank = 3, .targets = {"v_proj", "up_proj"}}, 1);
  std::vector<std::string> names;
  for (const NamedTensor& adapter : model.adapters())
    if (adapter.name.ends_with("lora_A.weight")) names.push_back(adapter.name);
  EXPECT_THAT(
      names,
      ::testing::ElementsAre(
          "model.layers.0.self_attn.v_proj.lora_A.weight", "model.layers.0.mlp.experts.0.up_proj.lora_A.weight",
          "model.layers.0.mlp.experts.1.up_proj.lora_A.weight", "model.layers.0.mlp.experts.2.up_proj.lora_A.weight",
          "model.layers.0.mlp.experts.3.up_proj.lora_A.weight", "model.layers.0.mlp.experts.4.up_proj.lora_A.weight",
          "model.layers.1.self_attn.v_proj.lora_A.weight", "model.layers.1.mlp.up_proj.lora_A.weight"));
}

TEST(LoraAdapters, OfAFrozenCopyStayWhileItsWeightsAreShared) {
  Model model = adapted_model("qwen2", at::kFloat);
  const Model reference = model.frozen();
  const at::NoGradGuard no_grad;
  const PackedBatch batch({20});
  const at::Tensor before = batch.hidden(model);
  EXPECT_TRUE(at::equal(batch.hidden(reference), before));
  for (const NamedTensor& adapter : model.adapters()) adapter.tensor.mul_(0.5);
  EXPECT_FALSE(at::equal(batch.hidden(model), before));
  EXPECT_TRUE(at::equal(batch.hidden(reference), before));
  for (std::size_t i = 0; i < model.parameters().size(); ++i)
    EXPECT_EQ(model.parameters()[i].tensor.data_ptr(), reference.parameters()[i].tensor.data_ptr());
}

}  // namespace
}  // namespace carnot
