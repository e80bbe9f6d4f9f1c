// loss/kl.h -- estimators of the KL divergence to the reference, from one sample per token
// (Schulman, "Approximating KL divergence", 2020).
//
// With x = current - reference log-probability:
//   K1        x. As a loss its expected gradient is zero on-policy: it regularises nothing in expectation.
//   Absolute  |x|
//   K2        x^2 / 2
//   K3        exp(-x) - 1 + x, with -x within +-20 and the result within +-10 (no gradient beyond)
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/objective/options.h"

namespace carnot {

/// Per token, with the gradient of the estimator; with `straight_through`, its value and the gradient of K2.
at::Tensor kl_estimate(KlEstimator estimator, bool straight_through, const at::Tensor& logprob_T,
                       const at::Tensor& reference_T);

}  // namespace carnot
