// optim/adamw.h -- AdamW (Loshchilov and Hutter 2019).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "carnot/core/optim/adamw_kernel.h"
#include "carnot/core/optim/options.h"
#include "carnot/core/optim/update_rule.h"

namespace carnot {

/// Keeps the means of gradients and of squared gradients.
std::unique_ptr<UpdateRule> make_adamw(const OptimizerOptions& options);

/// Updates weight and moments in place; all four tensors are alike: contiguous, float32 or float64, on one device.
/// On the CPU one pass over memory, on any number of threads the same bits; elsewhere LibTorch operators.
void adamw_update(const AdamWUpdate& update, const at::Tensor& gradient, at::Tensor& weight, at::Tensor& first,
                  at::Tensor& second);

/// The same by LibTorch operators, on any device.
void adamw_update_portable(const AdamWUpdate& update, const at::Tensor& gradient, at::Tensor& weight, at::Tensor& first,
                           at::Tensor& second);

}  // namespace carnot
