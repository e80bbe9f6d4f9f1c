// The same model on a GPU. Without one, these tests are skipped and say so.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "carnot/core/base/random.h"
#include "carnot/core/nn/cuda_backend.h"
#include "carnot/core/nn/kv_cache.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/cuda/statistics/device_statistics.h"
#include "testing/missing.h"

namespace carnot {
namespace {

class OnCuda : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    offer_cuda_statistics();
    const Status cuda = load_cuda_backend();
    if (!cuda) CARNOT_SKIP(Gpu, cuda.error().message);
  }

  Model make(at::Device device) const {
    const ModelConfig config{.family = GetParam(),
                             .vocab_size = 83,
                             .hidden_size = 48,
                             .intermediate_size = 80,
                             .num_layers = 2,
                             .num_heads = 6,
                             .num_kv_heads = 2,
                             .head_dim = 12};
    return Model(config, 5, at::TensorOptions().dtype(at::kDouble).device(device), 0.3);
  }

  static double relative_error(const at::Tensor& a, const at::Tensor& b) {
    return ((a.cpu() - b.cpu()).abs().max() / b.abs().max().cpu()).item<double>();
  }

  const PackedAttention plan_{.offsets = {0, 20, 33}};
  const at::Tensor tokens_ = at::arange(33, at::kLong) * 7 % 83;
  const at::Tensor positions_ = at::cat({at::arange(20, at::kLong), at::arange(13, at::kLong)});
};

INSTANTIATE_TEST_SUITE_P(Families, OnCuda, ::testing::ValuesIn(model_family_names()));

TEST_P(OnCuda, StatisticsAndGradientsEqualTheCpus) {
  Model cpu = make(at::kCPU), gpu = make(at::kCUDA);
  for (Model* model : {&cpu, &gpu}) {
    model->requires_grad(true);
    const at::Tensor hidden = model->hidden(tokens_, positions_, plan_);
    const auto statistics = token_statistics(hidden, model->head(), tokens_.flip(0).contiguous(),
                                             {.temperature = 0.7, .entropy_clamp = 0.3, .kernels = model->kernels()});
    (statistics.entropy_T * 0.3 + statistics.clamped_entropy_T * 0.2 - statistics.logprob_T).sum().backward();
  }
  const auto a = cpu.parameters(), b = gpu.parameters();
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_LT(relative_error(b[i].tensor.grad(), a[i].tensor.grad()), 1e-9) << a[i].name;
}

TEST_P(OnCuda, CachedDecodingEqualsTheWholeSequence) {
  const at::NoGradGuard no_grad;
  const Model model = make(at::kCUDA);
  const at::Tensor whole = model.hidden(tokens_, positions_, plan_).slice(0, 0, 20);
  KvCache cache(model.config(), {.blocks = 4, .states = 1}, model.options());
  const std::vector<int> blocks{3, 1};
  std::vector<at::Tensor> pieces;
  for (int begin = 0; begin < 20;) {
    const int end = begin == 0 ? 11 : begin + 1;
    PagedAttention paged{.cache = &cache};
    paged.sequences.push_back({.begin = 0, .end = end - begin, .past = begin, .blocks = blocks, .state = 0});
    pieces.push_back(model.hidden(tokens_.slice(0, begin, end), positions_.slice(0, begin, end), paged));
    begin = end;
  }
  EXPECT_LT(relative_error(at::cat(pieces), whole), 1e-9);
}

class StatisticsOnCuda : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    offer_cuda_statistics();
    const Status cuda = load_cuda_backend();
    if (!cuda) CARNOT_SKIP(Gpu, cuda.error().message);
    at::manual_seed(5);
    hidden_ = at::randn({301, 64}).to(GetParam());
    head_ = (0.3 * at::randn({5003, 64})).to(GetParam());
    targets_ = at::randint(5003, {301}, at::kLong);
  }

  /// Statistics, concatenated, and the gradients of their sum.
  std::vector<at::Tensor> measured(at::Device device, at::ScalarType type) const {
    const at::Tensor hidden = hidden_.to(type).to(device).requires_grad_(true), head = head_.to(type).to(device);
    mark_trained(head, true);
    const auto s = token_statistics(hidden, head, targets_, {.temperature = 0.8, .entropy_clamp = 0.3});
    (s.entropy_T * 0.3 + s.clamped_entropy_T * 0.2 - s.logprob_T + s.logsumexp_T * 0.1).sum().backward();
    const at::Tensor all = at::stack({s.logprob_T, s.entropy_T, s.logsumexp_T, s.clamped_entropy_T});
    return {all.detach().cpu().to(at::kDouble), hidden.grad().cpu().to(at::kDouble), head.grad().cpu().to(at::kDouble)};
  }

  at::Tensor hidden_, head_, targets_;
};

INSTANTIATE_TEST_SUITE_P(Types, StatisticsOnCuda, ::testing::Values(at::kFloat, at::kDouble, at::kBFloat16),
                         [](const auto& type) { return std::string(toString(type.param)); });

TEST_P(StatisticsOnCuda, AreThoseOfTheOwnKernelsAndEqualTheCpusInDouble) {
  EXPECT_NE(device_statistics_kernels(at::Device(at::kCUDA, 0)), nullptr);
  const auto found = measured(at::Device(at::kCUDA, 0), GetParam()), expected = measured(at::kCPU, at::kDouble);
  const double exact = GetParam() == at::kDouble ? 1e-11 : 2e-5;
  const double tolerances[] = {exact, GetParam() == at::kBFloat16 ? 1e-2 : 5 * exact,
                               GetParam() == at::kBFloat16 ? 1e-2 : 5 * exact};
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_LT(((found[i] - expected[i]).abs().max() / expected[i].abs().max()).item<double>(), tolerances[i]) << i;
}

}  // namespace
}  // namespace carnot
