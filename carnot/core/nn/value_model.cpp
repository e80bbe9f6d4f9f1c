#include "carnot/core/nn/value_model.h"

#include <ATen/Functions.h>

namespace carnot {

ValueModel::ValueModel(const Model& trunk)
    : trunk_(trunk.merged()),
      weight_(at::zeros({1, trunk.config().hidden_size}, trunk.options())),
      bias_(at::zeros({1}, trunk.options())),
      packed_(std::make_unique<PackedWeights>()) {}

at::Tensor ValueModel::values(const at::Tensor& tokens_T, const at::Tensor& positions_T,
                              const AttentionPlan& plan) const {
  const at::Tensor hidden = trunk_.hidden(tokens_T, positions_T, plan);
  return linear(hidden, {.weight = {weight_}, .bias = {bias_}}, *packed_, trunk_.kernels()).squeeze(-1);
}

std::vector<NamedTensor> ValueModel::parameters() const {
  auto all = trunk_.parameters();
  all.push_back({"value_head.weight", weight_, true});
  all.push_back({"value_head.bias", bias_});
  return all;
}

void ValueModel::requires_grad(bool on) {
  for (const NamedTensor& weight : parameters()) mark_trained(weight.tensor, on);
}

}  // namespace carnot
