// nn/weight_gradients.h -- gradients of bfloat16 weights that a backward pass adds in place, without a separate matrix
// for autograd to add. Internal to the room.
#pragma once

#include <ATen/core/Tensor.h>

namespace carnot {

/// The weight's gradient, to be added to. Undefined if autograd has to add it: there is no gradient yet, or a hook
/// waits for autograd's addition.
at::Tensor gradient_to_add_to(const at::Tensor& weight);

/// Makes `gradient` the weight's own if it has none yet. Returns undefined if so, else `gradient`, for autograd.
at::Tensor begin_gradient(const at::Tensor& weight, const at::Tensor& gradient);

}  // namespace carnot
