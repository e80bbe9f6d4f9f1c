// nn/portable_attention.h -- self-attention with LibTorch operators, for any device and dtype; the CPU kernels'
// reference.
#pragma once

#include "carnot/core/nn/self_attention.h"

namespace carnot {

/// As self_attention (nn/self_attention.h).
at::Tensor portable_attention(const ModelConfig& config, const LayerPlan& layer, const at::Tensor& qkv_TD,
                              const AttentionWeights& weights, const RotaryTable& rotary, const at::Tensor& positions_T,
                              const AttentionPlan& plan);

}  // namespace carnot
