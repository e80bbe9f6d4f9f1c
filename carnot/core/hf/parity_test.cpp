// The decoder against what transformers computed for the same checkpoints (tools/golden/transformers_parity.py).
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <map>

#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/nn/token_statistics.h"
#include "testing/paths.h"

namespace carnot {
namespace {

/// A recorded checkpoint and what was computed with it.
class Recorded {
 public:
  explicit Recorded(const std::string& name) : folder_(source_path("tests/golden/transformers/") + name) {
    const auto file = read_safetensors(folder_ + "/expected.safetensors");
    for (const NamedTensor& named : file->tensors) tensors_[named.name] = named.tensor;
  }

  Model load(at::ScalarType dtype) const { return load_model(folder_, at::TensorOptions(dtype)).value(); }
  const at::Tensor& values(const std::string& name) const { return tensors_.at(name); }
  /// Tokens, rows or positions.
  at::Tensor integers(const std::string& name) const { return tensors_.at(name).to(at::kLong); }

 private:
  std::string folder_;
  std::map<std::string, at::Tensor> tensors_;
};

const auto kCases = ::testing::Values("llama2", "llama3", "llama_linear", "mistral", "qwen2", "qwen2_yarn", "qwen3",
                                      "qwen3_window", "mistral_window", "smollm3", "olmo2", "olmo3", "granite",
                                      "gemma3", "ministral3", "ministral3_window", "phi3", "phi3_window", "phi3_long",
                                      "qwen3_moe", "qwen3_moe_window", "olmoe", "lfm2", "qwen3_5", "qwen3_5_turns");

/// Relative to the largest expected value.
void expect_close(const at::Tensor& got, const Recorded& recorded, const std::string& name, double bound) {
  const at::Tensor& expected = recorded.values(name);
  ASSERT_EQ(got.sizes(), expected.sizes()) << name;
  const double error = ((got.to(at::kDouble) - expected).abs().max() / expected.abs().max()).item<double>();
  EXPECT_LT(error, bound) << name;
}

double bound_of(at::ScalarType dtype) { return dtype == at::kFloat ? 1e-5 : 1e-12; }

PackedAttention plan_of(const Recorded& recorded) {
  const at::Tensor offsets = recorded.integers("offsets");
  PackedAttention plan;
  plan.offsets.assign(offsets.data_ptr<std::int64_t>(), offsets.data_ptr<std::int64_t>() + offsets.numel());
  return plan;
}

class Parity : public ::testing::TestWithParam<std::tuple<std::string, at::ScalarType, KernelChoice>> {};
INSTANTIATE_TEST_SUITE_P(Families, Parity,
                         ::testing::Combine(kCases, ::testing::Values(at::kFloat, at::kDouble),
                                            ::testing::Values(KernelChoice::Own, KernelChoice::Portable)));

/// Products with fixed vectors from the right and from the left, as recorded.
at::Tensor digest(const at::Tensor& gradient) {
  if (gradient.dim() == 1) return gradient;
  const at::Tensor g = gradient.to(at::kDouble).flatten(1);
  const auto weights = [](std::int64_t size) { return at::cos(1 + at::arange(size, at::kDouble)); };
  return at::cat({g.matmul(weights(g.size(1))), weights(g.size(0)).matmul(g)});
}

TEST_P(Parity, StatesStatisticsAndGradientsEqualTransformers) {
  const auto& [name, dtype, kernels] = GetParam();
  const Recorded recorded(name);
  Model model = recorded.load(dtype);
  model.choose_kernels(kernels);
  model.requires_grad(true);
  const auto expect = [&](const at::Tensor& got, const std::string& what) {
    expect_close(got.detach(), recorded, what, bound_of(dtype));
  };
  const at::Tensor hidden =
      model.hidden(recorded.integers("tokens"), recorded.integers("positions"), plan_of(recorded));
  expect(hidden, "hidden");
  expect(model.logits(hidden.slice(0, hidden.size(0) - 4, hidden.size(0) - 1)), "logits");
  const auto statistics = token_statistics(hidden.index_select(0, recorded.integers("rows")), model.head(),
                                           recorded.integers("targets"), {.kernels = kernels});
  expect(statistics.logprob_T, "logprob");
  expect(statistics.entropy_T, "entropy");
  expect(statistics.logsumexp_T, "logsumexp");
  (-statistics.logprob_T.mean()).backward();
  // The norm behind the gated delta rule divides by what is small at the first positions.
  const double gradient_bound = model.config().has_states() ? 30 * bound_of(dtype) : bound_of(dtype);
  for (const StoredWeight& weight : stored_weights(model)) {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& part : weight.parts) gradients.push_back(part.grad());
    expect_close(digest(at::cat(gradients)), recorded, "grad." + weight.name, gradient_bound);
  }
}

class LongParity : public ::testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {};
INSTANTIATE_TEST_SUITE_P(Families, LongParity, ::testing::Combine(kCases, ::testing::Values(at::kFloat, at::kDouble)));

TEST_P(LongParity, StatesBehindThousandsOfTokensEqualTransformers) {
  const at::NoGradGuard no_grad;
  const auto& [name, dtype] = GetParam();
  const Recorded recorded(name);
  const Model model = recorded.load(dtype);
  const at::Tensor tokens = recorded.integers("long.tokens");
  const int length = static_cast<int>(tokens.numel());
  ASSERT_EQ(length, 2560);
  const at::Tensor hidden =
      model.hidden(tokens, at::arange(length, at::kLong), PackedAttention{.offsets = {0, length}});
  // A float32 model rounds its angles as transformers does; at these positions that is most of the rounding.
  expect_close(hidden.index_select(0, recorded.integers("long.rows")), recorded,
               dtype == at::kFloat ? "long.hidden_single" : "long.hidden", bound_of(dtype));
}

class HalfPrecision : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, HalfPrecision, kCases);

// The recorded error is that of transformers' bfloat16 against float64, 0.04 to 0.15 nats on these models.
TEST_P(HalfPrecision, Bfloat16IsAtMostTwiceAsFarOffAsTransformers) {
  const at::NoGradGuard no_grad;
  const Recorded recorded(GetParam());
  const Model model = recorded.load(at::kBFloat16);
  const at::Tensor hidden =
      model.hidden(recorded.integers("tokens"), recorded.integers("positions"), plan_of(recorded));
  ASSERT_EQ(hidden.scalar_type(), at::kBFloat16);
  const auto statistics = token_statistics(hidden.index_select(0, recorded.integers("rows")), model.head(),
                                           recorded.integers("targets"), {.kernels = model.kernels()});
  const double error = (statistics.logprob_T.to(at::kDouble) - recorded.values("logprob")).abs().max().item<double>();
  EXPECT_GT(error, 1e-4) << "not computed in bfloat16";
  EXPECT_LT(error, 2 * recorded.values("bfloat16_error").item<double>());
}

}  // namespace
}  // namespace carnot
