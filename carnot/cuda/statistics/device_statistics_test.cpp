// The passes with device kernels, whose source runs on the CPU here (testing/emulated_statistics.h).
#include "carnot/cuda/statistics/device_statistics.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "carnot/core/nn/cuda_backend.h"
#include "carnot/core/nn/portable_statistics.h"
#include "testing/emulated_statistics.h"

namespace carnot {
namespace {

class DevicePasses : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  static StatisticsInputs inputs(std::int64_t tokens, std::int64_t vocabulary, std::int64_t removed) {
    at::manual_seed(tokens + removed);
    return {.hidden_TH = at::randn({tokens, 13}, GetParam()),
            .head_VH = at::randn({vocabulary, 13}, GetParam()),
            .targets_T = at::randint(vocabulary, {tokens}, at::kLong),
            .temperature = 0.7,
            .removed = removed};
  }

  /// Output tensors of the type that statistics are computed in.
  static StatisticsOutputs outputs(const StatisticsInputs& inputs) {
    const auto numbers = [&] { return at::full({inputs.tokens()}, std::nan(""), wide()); };
    StatisticsOutputs out{.statistics = {.logprob_T = numbers(), .entropy_T = numbers(), .logsumexp_T = numbers()}};
    if (inputs.removed == 0) return out;
    for (at::Tensor* tensor : {&out.statistics.clamped_entropy_T, &out.kept_logsumexp_T, &out.threshold_T})
      *tensor = numbers();
    out.tie_limit_T = at::empty({inputs.tokens()}, at::kLong);
    return out;
  }

  static at::ScalarType wide() { return GetParam() == at::kDouble ? at::kDouble : at::kFloat; }
  /// The reference for bfloat16 products has the same operands, with more digits.
  static StatisticsInputs exact(StatisticsInputs inputs) {
    inputs.hidden_TH = inputs.hidden_TH.to(at::kDouble);
    inputs.head_VH = inputs.head_VH.to(at::kDouble);
    return inputs;
  }
  static StatisticsOutputs in_double(StatisticsOutputs out) {
    TokenStatistics& s = out.statistics;
    for (at::Tensor* tensor :
         {&s.logprob_T, &s.entropy_T, &s.logsumexp_T, &s.clamped_entropy_T, &out.kept_logsumexp_T, &out.threshold_T})
      if (tensor->defined()) *tensor = tensor->to(at::kDouble);
    return out;
  }

  static void expect_near(const at::Tensor& found, const at::Tensor& expected, double tolerance, const char* what) {
    ASSERT_EQ(found.sizes(), expected.sizes()) << what;
    const double error = (found.to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>();
    EXPECT_LT(error, tolerance * (1 + expected.abs().max().item<double>())) << what;
  }

  const std::unique_ptr<cuda::StatisticsKernels> kernels_ =
      testing::emulated_statistics(testing::ThreadOrder::Ascending);
};

INSTANTIATE_TEST_SUITE_P(Types, DevicePasses, ::testing::Values(at::kFloat, at::kDouble, at::kBFloat16),
                         [](const auto& type) { return std::string(toString(type.param)); });

TEST_P(DevicePasses, EqualThoseByOperators) {
  const double tolerance = GetParam() == at::kDouble ? 1e-11 : 3e-5;
  for (const std::int64_t removed : {0, 40}) {
    const StatisticsInputs given = inputs(301, 101, removed);  // two strips
    ASSERT_GT(given.tokens(), given.strip_rows());
    StatisticsOutputs found = outputs(given), expected = in_double(outputs(given));
    device_statistics(given, found, *kernels_);
    portable_statistics(exact(given), expected);
    expect_near(found.statistics.logprob_T, expected.statistics.logprob_T, tolerance, "log-probability");
    expect_near(found.statistics.entropy_T, expected.statistics.entropy_T, tolerance, "entropy");
    expect_near(found.statistics.logsumexp_T, expected.statistics.logsumexp_T, tolerance, "logsumexp");
    if (removed > 0) {
      expect_near(found.statistics.clamped_entropy_T, expected.statistics.clamped_entropy_T, tolerance, "clamped");
      expect_near(found.kept_logsumexp_T, expected.kept_logsumexp_T, tolerance, "kept logsumexp");
    }
  }
}

TEST_P(DevicePasses, HaveTheGradientsOfThoseByOperators) {
  const bool narrow = GetParam() == at::kBFloat16;
  const double tolerance = GetParam() == at::kDouble ? 1e-11 : narrow ? 1e-2 : 3e-5;
  for (const std::int64_t removed : {0, 40})
    for (const bool of_head : {true, false}) {
      const StatisticsInputs given = inputs(301, 101, removed);
      StatisticsOutputs saved = outputs(given);
      device_statistics(given, saved, *kernels_);
      const auto factors = [&] { return at::randn({given.tokens()}, wide()); };
      StatisticsGradients gradients{.logprob_T = factors(),
                                    .entropy_T = factors(),
                                    .logsumexp_T = factors(),
                                    .clamped_entropy_T = factors(),
                                    .of_head = of_head};
      const InputGradients found = device_statistics_backward(given, saved, gradients, *kernels_);
      for (at::Tensor* tensor :
           {&gradients.logprob_T, &gradients.entropy_T, &gradients.logsumexp_T, &gradients.clamped_entropy_T})
        *tensor = tensor->to(at::kDouble);
      StatisticsOutputs saved_in_double = in_double(outputs(given));
      portable_statistics(exact(given), saved_in_double);
      const InputGradients expected = portable_statistics_backward(exact(given), saved_in_double, gradients);
      EXPECT_EQ(found.hidden_TH.scalar_type(), GetParam());
      expect_near(found.hidden_TH, expected.hidden_TH, tolerance, "of hidden states");
      EXPECT_EQ(found.head_VH.defined(), of_head);
      if (!of_head) continue;
      EXPECT_EQ(found.head_VH.scalar_type(), wide());
      expect_near(found.head_VH, expected.head_VH, tolerance, "of the head");
    }
}

TEST(DevicePassesElsewhere, AreNotUsedOnTheCpu) { EXPECT_EQ(device_statistics_kernels(at::kCPU), nullptr); }

TEST(CudaBackend, KnowsWhereLibTorchIs) {
  const auto folders = site_packages_of_libtorch();
  ASSERT_EQ(folders.size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(folders[0]));
}

}  // namespace
}  // namespace carnot
