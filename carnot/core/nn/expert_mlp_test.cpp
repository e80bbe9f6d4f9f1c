#include "carnot/core/nn/expert_mlp.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "carnot/core/base/random.h"
#include "carnot/core/nn/expert_router.h"
#include "testing/packed_batch.h"

namespace carnot {
namespace {

constexpr std::int64_t kHidden = 24, kWidth = 10;

struct Experts {
  Experts(int experts, int top_k, bool normalise)
      : plan{.experts = experts, .top_k = top_k, .normalise_top_k = normalise} {
    router = random({experts, kHidden}, 0.4);
    for (int e = 0; e < experts; ++e)
      weights.push_back({.gate = random({kWidth, kHidden}, 0.4),
                         .up = random({kWidth, kHidden}, 0.4),
                         .down = random({kHidden, kWidth}, 0.4)});
  }

  at::Tensor random(at::IntArrayRef shape, double scale) {
    const at::Tensor values = at::empty(shape, at::kDouble);
    for (std::int64_t i = 0; i < values.numel(); ++i) values.data_ptr<double>()[i] = scale * stream.normal();
    return values;
  }

  std::vector<at::Tensor*> pointers() {
    std::vector<at::Tensor*> tensors{&router};
    for (ExpertWeights& expert : weights) tensors.insert(tensors.end(), {&expert.gate, &expert.up, &expert.down});
    return tensors;
  }

  std::vector<at::Tensor> all() {
    std::vector<at::Tensor> tensors;
    for (const at::Tensor* tensor : pointers()) tensors.push_back(*tensor);
    return tensors;
  }

  at::Tensor output(const at::Tensor& x, KernelChoice kernels) {
    const auto products = [&](std::int64_t e) {
      const ExpertWeights& expert = weights[static_cast<std::size_t>(e)];
      return ExpertProducts{.gate_up = {.weight = {expert.gate, expert.up}}, .down = {.weight = {expert.down}}};
    };
    return expert_mlp(x, router, products, plan, packed, kernels);
  }

  /// The definition, row by row.
  at::Tensor defined_output(const at::Tensor& x) const {
    std::vector<at::Tensor> rows;
    for (const at::Tensor& row : x.unbind()) {
      const at::Tensor probabilities = at::mv(router, row).softmax(0);
      at::Tensor left = probabilities.detach().clone(), chosen_sum = at::zeros({}, at::kDouble);
      at::Tensor sum = at::zeros({kHidden}, at::kDouble);
      for (int k = 0; k < plan.top_k; ++k) {
        const std::int64_t e = left.argmax().item<std::int64_t>();
        left[e] = -1;
        const ExpertWeights& expert = weights[static_cast<std::size_t>(e)];
        const at::Tensor inner = at::silu(at::mv(expert.gate, row)) * at::mv(expert.up, row);
        sum = sum + probabilities[e] * at::mv(expert.down, inner);
        chosen_sum = chosen_sum + probabilities[e];
      }
      rows.push_back(plan.normalise_top_k ? sum / chosen_sum : sum);
    }
    return at::stack(rows);
  }

  RandomStream stream{21};
  LayerPlan plan;
  at::Tensor router;
  std::vector<ExpertWeights> weights;
  PackedWeights packed;
};

/// The gradients of a weighted sum of the output: of x, then of all weights.
std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& of, const at::Tensor& output) {
  for (const at::Tensor& tensor : of) tensor.mutable_grad().reset();
  (output * at::cos(at::arange(output.numel(), at::kDouble).view(output.sizes()))).sum().backward();
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : of)
    all.push_back(tensor.grad().defined() ? tensor.grad().clone() : at::zeros_like(tensor));
  return all;
}

TEST(ExpertMlp, EqualsTheDefinitionRowByRowWithAllGradients) {
  for (const auto& [count, top_k] : {std::pair(5, 2), std::pair(17, 4), std::pair(3, 3), std::pair(4, 1)})
    for (const bool normalise : {false, true})
      for (const KernelChoice kernels : {KernelChoice::Own, KernelChoice::Portable}) {
        Experts experts(count, top_k, normalise);
        std::vector<at::Tensor> inputs = experts.all();
        const at::Tensor x = experts.random({40, kHidden}, 1);
        inputs.insert(inputs.begin(), x);
        for (const at::Tensor& input : inputs) input.requires_grad_(true);
        const at::Tensor expected = experts.defined_output(x), got = experts.output(x, kernels);
        EXPECT_LT((got - expected).abs().max().item<double>(), 1e-12);
        const auto a = gradients(inputs, got), b = gradients(inputs, expected);
        for (std::size_t i = 0; i < a.size(); ++i)
          EXPECT_LT((a[i] - b[i]).abs().max().item<double>(), 1e-11) << i << " of " << count << ", " << top_k;
      }
}

TEST(ExpertMlp, OfEqualProbabilitiesTheLowestIndicesAreChosen) {
  Experts experts(7, 3, true);
  experts.router.zero_();
  experts.router[5].fill_(1);
  const at::Tensor x = at::ones({2, kHidden}, at::kDouble);
  x[1].fill_(-1);  // the fifth expert is the most, then the least probable one
  for (const KernelChoice kernels : {KernelChoice::Own, KernelChoice::Portable}) {
    const Routing routing = route(x, experts.router, experts.plan, experts.packed, kernels);
    EXPECT_TRUE(at::equal(routing.expert_TK, at::tensor({0, 1, 5, 0, 1, 2}, at::kLong).view({2, 3})));
    EXPECT_TRUE(at::allclose(routing.weight_TK.sum(1), at::ones({2}, at::kDouble)));
  }
}

TEST(ExpertMlp, AnExpertWithoutRowsHasAGradientOfZero) {
  for (const auto& [type, kernels] :
       {std::pair(at::kDouble, KernelChoice::Own), std::pair(at::kFloat, KernelChoice::Own),
        std::pair(at::kBFloat16, KernelChoice::Own), std::pair(at::kDouble, KernelChoice::Portable)}) {
    Experts experts(6, 2, false);
    for (at::Tensor* weight : experts.pointers()) *weight = weight->to(type);
    for (const at::Tensor& weight : experts.all()) mark_trained(weight, true);
    experts.output(experts.random({2, kHidden}, 1).to(type), kernels).sum().backward();
    int idle = 0;
    for (const at::Tensor& weight : experts.all()) {
      ASSERT_TRUE(weight.grad().defined());
      idle += weight.grad().abs().max().item<double>() == 0;
    }
    EXPECT_GE(idle, 2 * 3) << "two rows have at most four experts";
  }
}

TEST(ExpertMlp, NumbersThatAreNoneHaveExpertsAsWell) {
  Experts experts(6, 2, true);
  const at::Tensor x = at::full({3, kHidden}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
  for (const KernelChoice kernels : {KernelChoice::Own, KernelChoice::Portable})
    EXPECT_TRUE(experts.output(x, kernels).isnan().all().item<bool>());
}

}  // namespace
}  // namespace carnot
