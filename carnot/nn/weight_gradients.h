// nn/weight_gradients.h -- gradients of bfloat16 weights that a backward pass adds itself to those that are there,
// without a matrix of its own for autograd to add. Internal to the room.
#pragma once

#include <ATen/core/Tensor.h>

namespace carnot {

/// The weight's gradient, to be added to; undefined where autograd has to do it: there is none yet, or somebody waits
/// for autograd's addition.
at::Tensor gradient_to_add_to(const at::Tensor& weight);

/// Makes `gradient` the weight's own where there is none yet. Undefined where that is done, else `gradient`, for
/// autograd.
at::Tensor begin_gradient(const at::Tensor& weight, const at::Tensor& gradient);

}  // namespace carnot
