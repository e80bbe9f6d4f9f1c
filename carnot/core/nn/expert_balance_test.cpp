#include "carnot/core/nn/expert_balance.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/nn/expert_router.h"
#include "testing/packed_batch.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using nlohmann::json;
using testing::PackedBatch;

constexpr KernelChoice kBoth[] = {KernelChoice::Own, KernelChoice::Portable};

at::Tensor matrix(const json& rows) {
  std::vector<double> values;
  for (const json& row : rows)
    for (const json& value : row) values.push_back(value);
  return at::tensor(values, at::kDouble).view({static_cast<std::int64_t>(rows.size()), -1});
}

// Recorded by tools/golden/router_balance.py.
TEST(ExpertBalance, IsTheLossOfTransformersWithItsGradient) {
  for (const json& recorded : json::parse(read_file(recorded_path("router_balance.json")).value()))
    for (const bool normalise : {false, true})
      for (const KernelChoice kernels : kBoth) {
        const std::int64_t experts = recorded["experts"];
        const at::Tensor router = at::eye(experts, at::kDouble);  // rows are their logits
        PackedWeights packed;
        ExpertBalance balance(0.5);
        std::vector<at::Tensor> rows;
        at::Tensor nothing = at::zeros({}, at::kDouble);
        std::vector<LayerPlan> layers;
        for (int i = 0; i < 2; ++i)
          layers.push_back({.index = i,
                            .experts = static_cast<int>(experts),
                            .top_k = recorded["top_k"],
                            .normalise_top_k = normalise});
        for (int i = 0; i < 2; ++i) {
          rows.push_back(matrix(recorded["logits"][i]).requires_grad_(true));
          nothing = nothing + 0 * route(rows.back(), router, layers[i], packed, kernels, &balance).weight_TK.sum();
        }
        EXPECT_NEAR(balance.loss(), recorded["loss"].get<double>(), 1e-6) << "it counts in float32";
        nothing.backward();
        for (int i = 0; i < 2; ++i) {
          const at::Tensor expected = 0.5 * matrix(recorded["gradients"][i]);
          EXPECT_LT((rows[i].grad() - expected).abs().max().item<double>(), 1e-8);
        }
      }
}

struct BalancedModel {
  explicit BalancedModel(const std::string& family)
      : batch({9, 14, 6}), model(testing::small_decoder(family, 4), 5, at::kDouble, 0.3) {
    model.requires_grad(true);
  }

  double loss(double weight = 1, bool backward = false) {
    ExpertBalance balance(weight);
    const at::Tensor hidden = model.hidden(batch.tokens_T, batch.positions_T, batch.plan, &balance);
    if (backward) (hidden * 0).sum().backward();
    return balance.loss();
  }

  std::vector<at::Tensor> gradients() {
    for (const NamedTensor& weight : model.parameters()) weight.tensor.mutable_grad().reset();
    loss(0.25, true);
    std::vector<at::Tensor> all;
    for (const NamedTensor& weight : model.parameters())
      all.push_back(weight.tensor.grad().defined() ? weight.tensor.grad().clone() : at::zeros_like(weight.tensor));
    return all;
  }

  PackedBatch batch;
  Model model;
};

class ExpertBalanceOf : public ::testing::TestWithParam<const char*> {};

TEST_P(ExpertBalanceOf, HasTheGradientThatDifferencesOfTheLossHave) {
  BalancedModel balanced(GetParam());
  const auto gradients = balanced.gradients();
  const auto parameters = balanced.model.parameters();
  int compared = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::NoGradGuard no_grad;
    const at::Tensor flat = parameters[i].tensor.view(-1);
    const std::int64_t place = flat.numel() / 3;
    constexpr double kStep = 1e-6;
    const double value = flat[place].item<double>();
    double losses[2];
    for (const int side : {0, 1}) {
      flat[place].fill_(value + (side == 0 ? -kStep : kStep));
      losses[side] = balanced.loss();
    }
    flat[place].fill_(value);
    const double expected = 0.25 * (losses[1] - losses[0]) / (2 * kStep);
    EXPECT_NEAR(gradients[i].view(-1)[place].item<double>(), expected, 1e-7) << parameters[i].name;
    compared += std::abs(expected) > 1e-5;
  }
  EXPECT_GT(compared, 3) << "gradients that are not 0";
}

TEST_P(ExpertBalanceOf, IsCountedOnceWhereLayersRunAgain) {
  BalancedModel balanced(GetParam());
  const auto straight = balanced.gradients();
  const double loss = balanced.loss();
  EXPECT_GT(loss, balanced.model.config().experts_per_token);
  balanced.model.checkpoint_activations(true);
  EXPECT_EQ(balanced.loss(1, true), loss);
  const auto again = balanced.gradients();
  for (std::size_t i = 0; i < again.size(); ++i) EXPECT_TRUE(at::equal(again[i], straight[i]));
  balanced.model.choose_kernels(KernelChoice::Portable);
  EXPECT_NEAR(balanced.loss(), loss, 1e-12);
  const auto portable = balanced.gradients();
  for (std::size_t i = 0; i < again.size(); ++i)
    EXPECT_LT((portable[i] - straight[i]).abs().max().item<double>(), 1e-11);
}

TEST_P(ExpertBalanceOf, TrainedAloneEvensTheUseOfExperts) {
  BalancedModel balanced(GetParam());
  const double before = balanced.loss(), even = balanced.model.config().experts_per_token;
  for (int step = 0; step < 60; ++step) {
    const auto gradients = balanced.gradients();
    const at::NoGradGuard no_grad;
    const auto parameters = balanced.model.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].tensor.sub_(gradients[i], 2);
  }
  EXPECT_LT(balanced.loss() - even, 0.5 * (before - even));
}

INSTANTIATE_TEST_SUITE_P(Families, ExpertBalanceOf, ::testing::Values("qwen3_moe", "olmoe"));

}  // namespace
}  // namespace carnot
