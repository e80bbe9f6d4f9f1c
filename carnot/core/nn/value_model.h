// nn/value_model.h -- the critic: a separate decoder with a head that computes one number per position.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/model.h"

namespace carnot {

class ValueModel {
 public:
  /// Starts from the trunk's current weights (copied, adapters merged) and a head of zeros: every value is 0.
  explicit ValueModel(const Model& trunk);

  /// Value of the context up to and including each row: [T]. Arguments as for Model::hidden.
  at::Tensor values(const at::Tensor& tokens_T, const at::Tensor& positions_T, const AttentionPlan& plan) const;

  /// The trunk's weights and `value_head.weight` [1, H], `value_head.bias` [1].
  std::vector<NamedTensor> parameters() const;
  void requires_grad(bool on);
  void checkpoint_activations(bool on) { trunk_.checkpoint_activations(on); }
  const Model& trunk() const { return trunk_; }

 private:
  Model trunk_;
  at::Tensor weight_, bias_;
  std::unique_ptr<PackedWeights> packed_;
};

}  // namespace carnot
