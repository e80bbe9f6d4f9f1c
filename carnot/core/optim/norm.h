// optim/norm.h -- the global norm of gradients, summed in an order that no thread count changes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace carnot {

/// sqrt of the sum of squares over all tensors; undefined ones count as zero. On the CPU: float64 sums over chunks of
/// fixed size, added in order. Elsewhere the device sums each tensor, and the sums are added in order.
double global_norm(const std::vector<at::Tensor>& gradients);

/// What it adds up: sums of squares over the chunks (optim/chunks.h) of a tensor on the CPU, in float64.
std::vector<double> chunk_sums_of_squares(const at::Tensor& gradient);

/// The global norm of tensors with this many elements from the sums over their chunks, one tensor after the other: the
/// bits of global_norm(), wherever the chunks were summed. REQUIRES: a sum for each chunk.
double norm_of_chunk_sums(std::span<const double> sums, std::span<const std::int64_t> sizes);

}  // namespace carnot
