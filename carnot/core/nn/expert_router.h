// nn/expert_router.h -- which experts compute each row of a mixture of experts, and with which weights.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/nn/expert_balance.h"
#include "carnot/core/nn/layer_plan.h"
#include "carnot/core/nn/linear.h"

namespace carnot {

/// K experts of each of T rows, in order of their indices.
struct Routing {
  at::Tensor expert_TK{};  ///< int64, on the CPU
  at::Tensor weight_TK{};  ///< their probabilities, in the type that sums have (float32 for bfloat16); has a gradient
};

/// The layer's top_k experts by softmax(x router^T) over all experts; of equal probabilities, the lowest indices. With
/// normalise_top_k, their probabilities are divided by their sum. Logits of bfloat16 rows are float32, never rounded.
/// `balance` counts the layer, and its gradient is added in the backward pass, which it must outlive; null: none.
Routing route(const at::Tensor& x_TH, const at::Tensor& router_EH, const LayerPlan& layer, PackedWeights& packed,
              KernelChoice kernels, ExpertBalance* balance = nullptr);

}  // namespace carnot
