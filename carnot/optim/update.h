// optim/update.h -- one AdamW update of one tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/optim/adamw_kernel.h"

namespace carnot {

/// Updates weight and moments in place; all four tensors are alike: contiguous, float32 or float64, on one device.
/// On the CPU one pass over memory, on any number of threads the same bits; elsewhere LibTorch operators.
void adamw_update(const AdamWUpdate& update, const at::Tensor& gradient, at::Tensor& weight, at::Tensor& first,
                  at::Tensor& second);

/// The same by LibTorch operators, on any device.
void adamw_update_portable(const AdamWUpdate& update, const at::Tensor& gradient, at::Tensor& weight, at::Tensor& first,
                           at::Tensor& second);

/// into = values, rounded to the nearest where `into` is narrower. From float32 to bfloat16 on the CPU, on all threads.
void copy_rounded(const at::Tensor& values, const at::Tensor& into);

}  // namespace carnot
