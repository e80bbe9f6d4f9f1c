// optim/local_optimizer.h -- an optimizer of whole weights by the gradients that autograd accumulated, clipped by their
// global norm.
//
// Sums run in a fixed order: the same gradients give the same bits on any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "carnot/core/optim/optimizer.h"
#include "carnot/core/optim/weight_parts.h"

namespace carnot {

class LocalOptimizer : public Optimizer {
 public:
  /// The weights are updated in place.
  LocalOptimizer(const std::vector<Weight>& weights, const OptimizerOptions& options);

  StepReport step(double learning_rate) override;
  Tensors state() override { return parts_.state(); }
  Status load_state(const Tensors& tensors, std::int64_t num_updates, std::int64_t num_skipped) override {
    return parts_.load_state(tensors, num_updates, num_skipped);
  }

  std::int64_t num_updates() const override { return parts_.num_updates(); }
  std::int64_t num_skipped() const override { return parts_.num_skipped(); }

 private:
  std::vector<Weight> weights_;
  WeightParts parts_;
};

}  // namespace carnot
