// The decoder against what transformers computed for the same checkpoints (tools/golden/transformers_parity.py).
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <map>

#include "carnot/nn/safetensors.h"
#include "carnot/nn/token_statistics.h"

namespace carnot {
namespace {

class Parity : public testing::TestWithParam<std::tuple<std::string, at::ScalarType, KernelChoice>> {
 protected:
  Parity()
      : folder_(std::string(CARNOT_SOURCE_DIR) + "/tests/golden/transformers/" + std::get<0>(GetParam())),
        model_(load_model(folder_, at::TensorOptions(std::get<1>(GetParam()))).value()) {
    model_.choose_kernels(std::get<2>(GetParam()));
    const auto expected = read_safetensors(folder_ + "/expected.safetensors");
    for (const NamedTensor& named : expected->tensors) expected_[named.name] = named.tensor;
    const at::Tensor offsets = expected_.at("offsets");
    plan_.offsets.assign(offsets.data_ptr<std::int64_t>(), offsets.data_ptr<std::int64_t>() + offsets.numel());
  }

  void expect_close(const at::Tensor& got, const std::string& name) const {
    const at::Tensor& expected = expected_.at(name);
    const double error = ((got.to(at::kDouble) - expected).abs().max() / expected.abs().max()).item<double>();
    EXPECT_LT(error, std::get<1>(GetParam()) == at::kFloat ? 1e-5 : 1e-12) << name;
  }

  std::string folder_;
  Model model_;
  std::map<std::string, at::Tensor> expected_;
  PackedAttention plan_{.offsets = {}};
};

INSTANTIATE_TEST_SUITE_P(Families, Parity,
                         testing::Combine(testing::Values("qwen2", "qwen3"), testing::Values(at::kFloat, at::kDouble),
                                          testing::Values(KernelChoice::Own, KernelChoice::Portable)));

TEST_P(Parity, StatesStatisticsAndGradientsEqualTransformers) {
  model_.requires_grad(true);
  const at::Tensor hidden = model_.hidden(expected_.at("tokens"), expected_.at("positions"), plan_);
  expect_close(hidden.detach(), "hidden");
  const auto statistics = token_statistics(hidden.index_select(0, expected_.at("rows")), model_.head(),
                                           expected_.at("targets"), {.kernels = model_.kernels()});
  expect_close(statistics.logprob_T.detach(), "logprob");
  expect_close(statistics.entropy_T.detach(), "entropy");
  expect_close(statistics.logsumexp_T.detach(), "logsumexp");
  (-statistics.logprob_T.mean()).backward();
  for (const NamedTensor& weight : model_.parameters()) expect_close(weight.tensor.grad(), "grad." + weight.name);
}

}  // namespace
}  // namespace carnot
