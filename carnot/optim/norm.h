// optim/norm.h -- the global norm of gradients, summed in an order that no thread count changes.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace carnot {

/// sqrt of the sum of squares over all tensors; undefined ones count as zero. On the CPU: float64 sums over chunks of
/// fixed size, added in order. Elsewhere the device sums each tensor, and the sums are added in order.
double global_norm(const std::vector<at::Tensor>& gradients);

}  // namespace carnot
