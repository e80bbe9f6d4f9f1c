// nn/expert_mlp.h -- a mixture of experts in place of the MLP: each row is computed by a few gated MLPs, and their
// results are added, weighted by the router's probabilities.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "carnot/core/nn/expert_balance.h"
#include "carnot/core/nn/layer_plan.h"
#include "carnot/core/nn/linear.h"

namespace carnot {

/// Its products: gate and up, which share their input; down.
struct ExpertProducts {
  LinearWeights gate_up{}, down{};
};

/// The rows of each expert are computed together, in their order. A row's result is the sum of weight times output over
/// its experts in order of index, in float32 or float64, rounded once: with Carnot's kernels it depends on no other
/// row. Where gradients are computed, experts without rows get gradients of zero; else their products are not asked
/// for. `balance`: as in route().
at::Tensor expert_mlp(const at::Tensor& x_TH, const at::Tensor& router_EH,
                      const std::function<ExpertProducts(std::int64_t)>& products_of, const LayerPlan& layer,
                      PackedWeights& packed, KernelChoice kernels, ExpertBalance* balance = nullptr);

}  // namespace carnot
