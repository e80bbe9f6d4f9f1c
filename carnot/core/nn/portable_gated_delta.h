// nn/portable_gated_delta.h -- the gated delta rule with LibTorch's operators, row by row, on any device. Internal to
// the room.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/nn/attention_plan.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

/// What the rule reads: rows after convolution and activation, inputs of its gates, and their weights.
struct DeltaInputs {
  at::Tensor qkv_TD{}, a_TV{}, b_TV{}, log_rate{}, step_bias{};
};

/// What kernel/recurrent/gated_delta.h computes: [T, values].
at::Tensor portable_gated_delta(const ModelConfig& config, const DeltaInputs& in, const AttentionPlan& plan, int layer);

}  // namespace carnot
