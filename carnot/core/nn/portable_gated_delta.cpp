#include "carnot/core/nn/portable_gated_delta.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/nn/convolution_taps.h"
#include "carnot/core/nn/kv_cache.h"

namespace carnot {
namespace {

constexpr double kUnitEpsilon = 1e-6;

at::Tensor unit(const at::Tensor& x) { return x * at::rsqrt((x * x).sum(-1, true) + kUnitEpsilon); }

/// The batch's rows, in the type of sums; T first, then value heads V.
struct DeltaRows {
  DeltaRows(const ModelConfig& config, const DeltaInputs& in) {
    const at::ScalarType type = in.qkv_TD.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const std::int64_t rows = in.qkv_TD.size(0), keys = config.delta_key_heads * config.delta_key_dim;
    const auto parts = in.qkv_TD.to(type).split_with_sizes({keys, keys, config.delta_values()}, 1);
    const std::int64_t group = config.delta_value_heads / config.delta_key_heads;
    const auto of_value_heads = [&](const at::Tensor& x) {
      return unit(x.view({rows, config.delta_key_heads, config.delta_key_dim})).repeat_interleave(group, 1);
    };
    query_TVK = of_value_heads(parts[0]) / std::sqrt(static_cast<double>(config.delta_key_dim));
    key_TVK = of_value_heads(parts[1]);
    value_TVD = parts[2].view({rows, config.delta_value_heads, config.delta_value_dim});
    beta_TV = in.b_TV.to(type).sigmoid();
    const at::Tensor steps = in.a_TV.to(type) + in.step_bias.to(type);
    decay_TV = (-in.log_rate.to(type).exp() * at::logaddexp(steps, at::zeros_like(steps))).exp();
  }

  /// Advances a state [V, K, D] by a row; returns the row's output [V, D].
  at::Tensor step(std::int64_t row, at::Tensor& state) const {
    const at::Tensor key = key_TVK[row].unsqueeze(-1);
    const at::Tensor decayed = state * decay_TV[row].view({-1, 1, 1});
    const at::Tensor delta = beta_TV[row].unsqueeze(-1) * (value_TVD[row] - (decayed * key).sum(1));
    state = decayed + key * delta.unsqueeze(1);
    return (state * query_TVK[row].unsqueeze(-1)).sum(1);
  }

  at::Tensor query_TVK, key_TVK, value_TVD, beta_TV, decay_TV;
};

std::vector<std::int64_t> state_shape(const ModelConfig& config) {
  return {config.delta_value_heads, config.delta_key_dim, config.delta_value_dim};
}

std::vector<at::Tensor> packed_outputs(const ModelConfig& config, const DeltaRows& rows, const PackedAttention& plan) {
  std::vector<at::Tensor> outputs, states;  // by row
  for (int s = 0; s < plan.num_sequences(); ++s) {
    const int past = plan.past_of(s);
    at::Tensor state = past == 0 ? at::zeros(state_shape(config), rows.value_TVD.options())
                                 : states[static_cast<std::size_t>(row_at(plan, plan.parent(s), past - 1))];
    for (std::int64_t row = plan.offsets[static_cast<std::size_t>(s)];
         row < plan.offsets[static_cast<std::size_t>(s) + 1]; ++row) {
      outputs.push_back(rows.step(row, state));
      states.push_back(state);
    }
  }
  return outputs;
}

/// The cache's states begin with the numbers of [V, K, D].
std::vector<at::Tensor> paged_outputs(const ModelConfig& config, const DeltaRows& rows, const PagedAttention& plan,
                                      int layer) {
  const std::int64_t size = std::int64_t{config.delta_value_heads} * config.delta_key_dim * config.delta_value_dim;
  std::vector<at::Tensor> outputs;
  for (const PagedRows& sequence : plan.sequences) {
    CARNOT_CHECK_GE(sequence.state, 0);
    const at::Tensor held =
        plan.cache->states(layer).select(0, sequence.state).narrow(0, 0, size).view(state_shape(config));
    at::Tensor state = sequence.past == 0 ? at::zeros_like(held) : held;
    for (int row = sequence.begin; row < sequence.end; ++row) outputs.push_back(rows.step(row, state));
    held.copy_(state);
  }
  return outputs;
}

}  // namespace

at::Tensor portable_gated_delta(const ModelConfig& config, const DeltaInputs& in, const AttentionPlan& plan,
                                int layer) {
  const DeltaRows rows(config, in);
  const auto* paged = std::get_if<PagedAttention>(&plan);
  const std::vector<at::Tensor> outputs = paged != nullptr
                                              ? paged_outputs(config, rows, *paged, layer)
                                              : packed_outputs(config, rows, std::get<PackedAttention>(plan));
  return at::stack(outputs).view({-1, config.delta_values()}).to(in.qkv_TD.scalar_type());
}

}  // namespace carnot
