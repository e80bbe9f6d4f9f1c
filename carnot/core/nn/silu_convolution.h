// nn/silu_convolution.h -- the causal convolution before the gated delta rule, with gradients; kernels as in
// nn/linear.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/nn/attention_plan.h"
#include "carnot/core/nn/model.h"

namespace carnot {

/// The result at position p is silu(s), s the sum over taps l of weight[l] x[p - L + 1 + l], rounded; positions before
/// 0 add nothing. x [T, D], rows contiguous; weight [D, 1, L]; returns [T, D]. With a paged plan, rows before those of
/// the batch are in the cache's layer, where the last of each sequence are then kept, without gradients.
at::Tensor silu_convolution(const at::Tensor& x_TD, const at::Tensor& weight, const AttentionPlan& plan, int layer,
                            KernelChoice kernels);

}  // namespace carnot
