// nn/elementwise.h -- RMSNorm, gated product and embedding rows, with gradients; kernels as in nn/linear.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/nn/model.h"

namespace carnot {

struct RmsNormOptions {
  double epsilon = 1e-6;
  double offset = 0;  ///< added to the weights
};

/// x * rsqrt(mean(x^2) + epsilon) * (weight + offset) over the last dimension.
at::Tensor rms_norm(const at::Tensor& x_TH, const at::Tensor& weight_H, const RmsNormOptions& options,
                    KernelChoice kernels);

/// activation(gate) * up, where a row of x holds gate followed by up: [T, 2 F] to [T, F].
at::Tensor gated_product(const at::Tensor& gate_up_TF, Activation activation, KernelChoice kernels);

/// Rows of the table: [T, H].
at::Tensor embed(const at::Tensor& table_VH, const at::Tensor& tokens_T, KernelChoice kernels);

}  // namespace carnot
