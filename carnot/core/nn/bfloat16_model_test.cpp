// A model in bfloat16: its distance from float64, gradients summed in float32, and a training step that follows
// float32's.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <cmath>
#include <memory>

#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/nn/value_model.h"
#include "testing/packed_batch.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

/// |a - b| / |b|, over all elements.
double distance(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i].to(at::kDouble) - b[i].to(at::kDouble)).square().sum().item<double>();
    size += b[i].to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(difference / size);
}

Model bfloat16_model(const std::string& family) {
  return Model(small_decoder(family), 5, at::TensorOptions().dtype(at::kBFloat16), 0.1);
}

/// The same weights in float64.
Model in_float64(const Model& model) {
  Model wide = Model::uninitialised(model.config(), at::TensorOptions().dtype(at::kDouble));
  const at::NoGradGuard no_grad;
  const auto from = model.parameters(), to = wide.parameters();
  for (std::size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  return wide;
}

class BFloat16Model : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, BFloat16Model, ::testing::ValuesIn(model_family_names()));

TEST_P(BFloat16Model, IsNoFartherFromFloat64ThanWithLibTorchsOperators) {
  Model own = bfloat16_model(GetParam()), portable = own.clone(), exact = in_float64(own);
  portable.choose_kernels(KernelChoice::Portable);
  const PackedBatch batch({1, 7, 40, 19});
  {
    const at::NoGradGuard no_grad;
    const at::Tensor hidden = batch.hidden(exact), ours = batch.hidden(own), theirs = batch.hidden(portable);
    EXPECT_EQ(ours.scalar_type(), at::kBFloat16);
    EXPECT_LT(distance({ours}, {hidden}), 1.1 * distance({theirs}, {hidden}));
    EXPECT_LT(distance({ours}, {hidden}), 0.02);
  }
  const auto gradients = gradients_of(exact, batch), ours = gradients_of(own, batch),
             theirs = gradients_of(portable, batch);
  for (const at::Tensor& gradient : ours) EXPECT_EQ(gradient.scalar_type(), at::kFloat);
  EXPECT_LT(distance(ours, gradients), 1.1 * distance(theirs, gradients));
  const auto names = own.parameters();
  // The gated delta rule's norm divides by what may be close to 0, whatever computes it.
  const double bound = own.config().has_states() ? 0.2 : 0.05;
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_LT(distance({ours[i]}, {gradients[i]}), bound) << names[i].name;
}

TEST_P(BFloat16Model, StatisticsOfItsHiddenStatesAreThoseOfFloat64) {
  const Model model = bfloat16_model(GetParam());
  const at::NoGradGuard no_grad;
  const PackedBatch batch({30, 11});
  const at::Tensor hidden = batch.hidden(model);
  const auto statistics = token_statistics(hidden, model.head(), batch.targets_T, {.temperature = 0.7});
  const auto exact =
      token_statistics(hidden.to(at::kDouble), model.head().to(at::kDouble), batch.targets_T, {.temperature = 0.7});
  ASSERT_EQ(statistics.logprob_T.scalar_type(), at::kFloat);
  const auto error = [](const at::Tensor& a, const at::Tensor& b) {
    return (a.to(at::kDouble) - b).abs().max().item<double>();
  };
  EXPECT_LT(error(statistics.logprob_T, exact.logprob_T), 1e-5) << "logits are not rounded";
  EXPECT_LT(error(statistics.entropy_T, exact.entropy_T), 1e-5);
  EXPECT_LT(error(statistics.logsumexp_T, exact.logsumexp_T), 1e-5);
}

TEST_P(BFloat16Model, SampledLogitsAreThoseOfTheStatistics) {
  const Model model = bfloat16_model(GetParam());
  const at::NoGradGuard no_grad;
  const PackedBatch batch({23, 18});
  const at::Tensor hidden = batch.hidden(model);
  const at::Tensor logits = model.logits(hidden);
  ASSERT_EQ(logits.scalar_type(), at::kFloat);
  EXPECT_FALSE(at::equal(logits, logits.to(at::kBFloat16).to(at::kFloat)));
  EXPECT_TRUE(at::equal(model.logits(hidden.slice(0, 20, 21)), logits.slice(0, 20, 21))) << "in any batch";
  const at::Tensor logprob = token_statistics(hidden, model.head(), batch.targets_T, {}).logprob_T;
  const at::Tensor of_logits = logits.log_softmax(-1).gather(-1, batch.targets_T.unsqueeze(-1)).squeeze(-1);
  EXPECT_LT((logprob - of_logits).abs().max().item<double>(), 1e-5);
}

TEST(BFloat16Gradients, SmallContributionsOfMicroBatchesAreNotLost) {
  // In bfloat16, 256 + 1 is 256: the sum would stop growing.
  const at::Tensor weight = at::ones({3}, at::kBFloat16);
  mark_trained(weight, true);
  (weight * 256).sum().backward();
  for (int i = 0; i < 40; ++i) weight.sum().backward();
  ASSERT_EQ(weight.grad().scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(weight.grad(), at::full({3}, 296.0F)));
}

void expect_sum_of_two_passes(Model& model) {
  const PackedBatch first({1, 7, 40}), second({19, 30});
  const auto of_first = gradients_of(model, first), of_second = gradients_of(model, second);
  model.requires_grad(true);
  loss_of(model, first).backward();
  loss_of(model, second).backward();
  const auto trained = model.trained();
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const at::Tensor gradient = trained[i].tensor.grad(), sum = of_first[i] + of_second[i];
    // With a tied head, head and embedding add four terms in each pass, in the order of the passes.
    if (trained[i].tensor.is_same(model.head()) && model.config().tied_head) {
      EXPECT_LT((gradient - sum).abs().max().item<double>(), 1e-6 * sum.abs().max().item<double>());
    } else {
      EXPECT_TRUE(at::equal(gradient, sum)) << trained[i].name;
    }
  }
}

TEST(BFloat16Gradients, OfATiedHeadAreTheSameWhetherAutogradAddsThemOrNot) {
  Model model = bfloat16_model("qwen2");
  const PackedBatch batch({1, 7, 40});
  const auto own = gradients_of(model, batch);
  model.requires_grad(true);
  struct Waits : torch::autograd::PostAccumulateGradHook {
    void operator()(const at::Tensor&) override {}
  };
  torch::autograd::impl::set_post_acc_grad_hooks(model.head(), std::make_unique<Waits>());
  loss_of(model, batch).backward();
  const auto trained = model.trained();
  for (std::size_t i = 0; i < trained.size(); ++i)
    EXPECT_LE((trained[i].tensor.grad() - own[i]).abs().max().item<double>(), 1e-6 * own[i].abs().max().item<double>())
        << trained[i].name;
}

TEST_P(BFloat16Model, GradientsOfTwoPassesAreTheSumOfEach) {
  Model model = bfloat16_model(GetParam());
  expect_sum_of_two_passes(model);
  model.requires_grad(false);
  model.add_adapters({.rank = 5, .alpha = 7}, 11);
  expect_sum_of_two_passes(model);
}

TEST(BFloat16Gradients, OfAdaptersAndACriticAreThoseOfFloat64) {
  const PackedBatch batch({33, 20});
  Model own = bfloat16_model("qwen2");
  own.add_adapters({.rank = 5, .alpha = 7}, 11);
  {
    const at::NoGradGuard no_grad;
    for (const NamedTensor& adapter : own.adapters()) adapter.tensor.add_(0.05);
  }
  Model exact = in_float64(own);
  exact.add_adapters(own.lora(), 11);
  {
    const at::NoGradGuard no_grad;
    const auto from = own.adapters(), to = exact.adapters();
    for (std::size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  }
  const auto ours = gradients_of(own, batch), gradients = gradients_of(exact, batch);
  for (const at::Tensor& gradient : ours) EXPECT_EQ(gradient.scalar_type(), at::kFloat);
  EXPECT_LT(distance(ours, gradients), 0.03);

  ValueModel critic(bfloat16_model("qwen2"));
  critic.requires_grad(true);
  const at::Tensor values = critic.values(batch.tokens_T, batch.positions_T, batch.plan);
  (values.to(at::kFloat) - 1).square().sum().backward();
  for (const NamedTensor& weight : critic.parameters())
    if (weight.name == "value_head.bias") {
      EXPECT_TRUE(at::equal(weight.tensor.grad(), at::full({1}, -2.0F * 53)));
    }
}

/// Hidden states and a head that are both bfloat16; more columns than a strip of the backward pass has.
TEST(BFloat16Statistics, GradientIsThatOfFloat64RoundedOnce) {
  RandomStream stream(8);
  const auto random = [&](std::int64_t rows, std::int64_t columns, double scale) {
    at::Tensor x = at::empty({rows, columns}, at::kDouble);
    for (std::int64_t i = 0; i < x.numel(); ++i) x.data_ptr<double>()[i] = scale * stream.normal();
    return x.to(at::kBFloat16);
  };
  constexpr std::int64_t kTokens = 43, kVocabulary = 5003, kHidden = 37;
  const at::Tensor hidden = random(kTokens, kHidden, 1), head = random(kVocabulary, kHidden, 0.4);
  std::vector<std::int64_t> ids;
  for (std::int64_t t = 0; t < kTokens; ++t) ids.push_back(static_cast<std::int64_t>(stream.below(kVocabulary)));
  ids[0] = 0;
  ids[1] = kVocabulary - 1;
  const at::Tensor targets = at::tensor(ids, at::kLong), mix = random(4, kTokens, 1).to(at::kFloat);
  const auto gradients = [&](at::ScalarType type) {
    at::Tensor h = hidden.to(type, /*non_blocking=*/false, /*copy=*/true);
    at::Tensor w = head.to(type, /*non_blocking=*/false, /*copy=*/true);
    mark_trained(h, true);
    mark_trained(w, true);
    const auto s = token_statistics(h, w, targets, {.temperature = 0.8, .entropy_clamp = 0.3});
    (s.logprob_T * mix[0] + s.entropy_T * mix[1] + s.logsumexp_T * mix[2] + s.clamped_entropy_T * mix[3])
        .sum()
        .backward();
    return std::pair(h.grad(), w.grad());
  };
  const auto [dhidden, dhead] = gradients(at::kBFloat16);
  const auto [exact_dhidden, exact_dhead] = gradients(at::kDouble);
  EXPECT_EQ(dhead.scalar_type(), at::kFloat);
  // Each element of the logits' gradient is rounded by at most 2^-8, and those of the hidden states once more.
  EXPECT_LT(distance({dhidden}, {exact_dhidden}), 0.004);
  EXPECT_LT(distance({dhead}, {exact_dhead}), 0.003);
  for (std::int64_t row : {ids[0], ids[1], ids[7]}) EXPECT_LT(distance({dhead[row]}, {exact_dhead[row]}), 0.01) << row;
  set_num_threads(3);
  const auto [again_hidden, again_head] = gradients(at::kBFloat16);
  set_num_threads(1);
  EXPECT_TRUE(at::equal(again_hidden, dhidden));
  EXPECT_TRUE(at::equal(again_head, dhead));
}

}  // namespace
}  // namespace carnot
