// optim/adamw.h -- AdamW of whole tensors by the gradients that autograd accumulated, clipped by their global norm.
//
// Sums run in a fixed order: the same gradients give the same bits on any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "carnot/optim/adamw_parts.h"
#include "carnot/optim/optimizer.h"

namespace carnot {

class AdamW : public Optimizer {
 public:
  /// The tensors are updated in place.
  AdamW(Parameters parameters, const AdamWOptions& options);

  StepReport step(double learning_rate) override;
  Parameters state() override { return parts_.state(); }
  Status load_state(const Parameters& tensors, std::int64_t num_updates, std::int64_t num_skipped) override {
    return parts_.load_state(tensors, num_updates, num_skipped);
  }

  std::int64_t num_updates() const override { return parts_.num_updates(); }
  std::int64_t num_skipped() const override { return parts_.num_skipped(); }

 private:
  std::vector<at::Tensor> tensors_;
  AdamWParts parts_;
};

/// The whole of each tensor.
std::vector<WeightPart> whole_weights(const Optimizer::Parameters& parameters);

}  // namespace carnot
