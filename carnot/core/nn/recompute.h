// nn/recompute.h -- activation checkpointing (Chen et al. 2016): a block saves only its input and runs again in the
// backward pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace carnot {

/// block(x), with gradients for x and for the weights that the block uses. The block must return the same bits each
/// time; the gradients then have the same bits as without checkpointing.
at::Tensor recompute_in_backward(const at::Tensor& x, std::function<at::Tensor(const at::Tensor&)> block);

}  // namespace carnot
