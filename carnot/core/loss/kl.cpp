#include "carnot/core/loss/kl.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

constexpr double kMaxInput = 20;
constexpr double kMaxOutput = 10;

at::Tensor k2(const at::Tensor& x_T) { return 0.5 * x_T * x_T; }

at::Tensor plain_estimate(KlEstimator estimator, const at::Tensor& x_T) {
  switch (estimator) {
    case KlEstimator::K1: return x_T;
    case KlEstimator::Absolute: return x_T.abs();
    case KlEstimator::K2: return k2(x_T);
    case KlEstimator::K3: {
      const at::Tensor y_T = (-x_T).clamp(-kMaxInput, kMaxInput);
      return (y_T.exp() - y_T - 1).clamp(-kMaxOutput, kMaxOutput);
    }
  }
  CARNOT_CHECK(false, "every estimator has a case");
}

}  // namespace

at::Tensor kl_estimate(KlEstimator estimator, bool straight_through, const at::Tensor& logprob_T,
                       const at::Tensor& reference_T) {
  const at::Tensor x_T = logprob_T - reference_T;
  const at::Tensor estimate_T = plain_estimate(estimator, x_T);
  if (!straight_through) return estimate_T;
  const at::Tensor square_T = k2(x_T);
  return square_T - square_T.detach() + estimate_T.detach();
}

}  // namespace carnot
