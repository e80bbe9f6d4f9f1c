// nn/self_attention.h -- causal self-attention over projected rows, with gradients; kernels as in nn/linear.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/nn/attention_plan.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/nn/rotary.h"

namespace carnot {

struct AttentionWeights {
  at::Tensor query_norm{};  ///< as LayerPlan::query_key_norm says; undefined without such norms
  at::Tensor key_norm{};
  double norm_offset = 0;  ///< added to both
};

/// Causal self-attention of one layer over projected rows qkv [T, (heads + 2 kv_heads) head_dim]: norms, rotation,
/// attention. Returns [T, heads * head_dim]. With a paged plan, the layer's keys and values are written to the cache,
/// without gradients.
at::Tensor self_attention(const ModelConfig& config, const LayerPlan& layer, const at::Tensor& qkv_TD,
                          const AttentionWeights& weights, const RotaryTable& rotary, const at::Tensor& positions_T,
                          const AttentionPlan& plan, KernelChoice kernels);

}  // namespace carnot
