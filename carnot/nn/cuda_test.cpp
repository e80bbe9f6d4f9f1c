// The same model on a GPU. Without one these tests say so and are skipped.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "carnot/base/random.h"
#include "carnot/nn/cuda_backend.h"
#include "carnot/nn/kv_cache.h"
#include "carnot/nn/model.h"
#include "carnot/nn/token_statistics.h"

namespace carnot {
namespace {

class OnCuda : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Status cuda = load_cuda_backend();
    if (!cuda) GTEST_SKIP() << "the GPU is not tested: " << cuda.error().message;
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
  KvCache cache(model.config(), 4, model.options());
  const std::vector<int> blocks{3, 1};
  std::vector<at::Tensor> pieces;
  for (int begin = 0; begin < 20;) {
    const int end = begin == 0 ? 11 : begin + 1;
    PagedAttention paged{.cache = &cache};
    paged.sequences.push_back({.begin = 0, .end = end - begin, .past = begin, .blocks = blocks});
    pieces.push_back(model.hidden(tokens_.slice(0, begin, end), positions_.slice(0, begin, end), paged));
    begin = end;
  }
  EXPECT_LT(relative_error(at::cat(pieces), whole), 1e-9);
}

}  // namespace
}  // namespace carnot
