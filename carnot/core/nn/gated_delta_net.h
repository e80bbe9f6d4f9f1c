// nn/gated_delta_net.h -- Qwen3.5's linear attention between its projections, with gradients; kernels as in
// nn/linear.h: a causal convolution with SiLU, the gated delta rule (Yang et al., arXiv:2412.06464), a gated norm.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/nn/attention_plan.h"
#include "carnot/core/nn/model.h"

namespace carnot {

struct GatedDeltaWeights {
  at::Tensor convolution{};  ///< [ModelConfig::delta_width(), 1, taps]
  at::Tensor log_rate{};     ///< [value_heads], `A_log`
  at::Tensor step_bias{};    ///< [value_heads], `dt_bias`
  at::Tensor norm{};         ///< [value_dim]
};

/// A row of qkvz holds queries, keys and values of the rule and the gate z, one behind the other: [T, delta_width() +
/// delta_values()]; of ba, the inputs b and a of the rule's gates: [T, 2 value_heads]. Returns z and
/// norm(rule(silu(convolved))), of which gated_product() makes the mixer's result: [T, 2 delta_values()]. With a paged
/// plan, the sequences' states in the cache's layer are advanced, without gradients.
at::Tensor gated_delta_net(const ModelConfig& config, const at::Tensor& qkvz_TD, const at::Tensor& ba_TV,
                           const GatedDeltaWeights& weights, const AttentionPlan& plan, int layer,
                           KernelChoice kernels);

/// Numbers of a sequence's state in one layer, where sums are float64 or float32.
std::int64_t delta_state_size(const ModelConfig& config, bool in_double);

}  // namespace carnot
