// nn/recompute.h -- activation checkpointing (Chen et al. 2016): a block keeps only its input and runs a second time
// in the backward pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace carnot {

/// block(x) with gradients for x and for the weights that the block uses. The block must give the same bits each time
/// it runs; then the gradients have the bits that they would have without this.
at::Tensor recompute_in_backward(const at::Tensor& x, std::function<at::Tensor(const at::Tensor&)> block);

}  // namespace carnot
