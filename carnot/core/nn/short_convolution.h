// nn/short_convolution.h -- LFM2's gated short convolution in place of attention, with gradients; kernels as in
// nn/linear.h. What it remembers of a position is one row, which the KV cache holds, so that forks and evictions are
// those of attention.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/nn/attention_plan.h"
#include "carnot/core/nn/model.h"

namespace carnot {

/// A row of bcx holds B, C and x, one behind the other. With u = B x, rounded, the result at position p is C times the
/// sum over taps l of weight[l] u[p - L + 1 + l]; positions before 0 add nothing. bcx [T, 3 H], weight [H, 1, L];
/// returns [T, H]. With a paged plan, the rows' u are written to the values of the cache's layer, without gradients.
at::Tensor short_convolution(const at::Tensor& bcx_TD, const at::Tensor& weight_HL, const AttentionPlan& plan,
                             int layer, KernelChoice kernels);

}  // namespace carnot
