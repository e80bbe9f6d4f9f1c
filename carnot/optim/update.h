// optim/update.h -- the arithmetic of one AdamW update of one tensor.
#pragma once

#include <ATen/core/Tensor.h>

namespace carnot {

/// The numbers of one update; the same for every element of a tensor.
struct AdamWUpdate {
  double gradient_scale = 1;  ///< of the clipping
  double beta1 = 0, beta2 = 0, epsilon = 0;
  double keep = 1;          ///< 1 - learning rate x decay
  double step_size = 0;     ///< learning rate / (1 - beta1^t)
  double inverse_root = 1;  ///< 1 / sqrt(1 - beta2^t)
};

/// Updates weight and moments in place; all four tensors are alike: contiguous, float32 or float64, on one device.
/// On the CPU one pass over memory, on any number of threads the same bits; elsewhere LibTorch operators.
void adamw_update(const AdamWUpdate& update, const at::Tensor& gradient, at::Tensor& weight, at::Tensor& first,
                  at::Tensor& second);

/// The same by LibTorch operators, on any device.
void adamw_update_portable(const AdamWUpdate& update, const at::Tensor& gradient, at::Tensor& weight,
                           at::Tensor& first, at::Tensor& second);

}  // namespace carnot
