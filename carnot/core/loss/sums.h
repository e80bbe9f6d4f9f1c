// loss/sums.h -- sums in a fixed order, over all tokens and by segment (turn or sequence).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace carnot {

/// Sum of a tensor's values, first to last. No gradient. REQUIRES: float64 on the CPU.
double ordered_sum(const at::Tensor& values_T);

/// Mean over each segment, copied back to the segment's tokens. No gradient.
/// REQUIRES: float64 values on the CPU; int64 segments in [0, num_segments).
at::Tensor segment_mean(const at::Tensor& values_T, const at::Tensor& segment_T, std::int64_t num_segments);

}  // namespace carnot
