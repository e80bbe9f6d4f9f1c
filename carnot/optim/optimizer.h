// optim/optimizer.h -- what training needs of an optimizer: one update with the accumulated gradients, and its state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "carnot/base/result.h"

namespace carnot {

struct StepReport {
  double grad_norm = 0;  ///< before clipping; not finite where the step was skipped
  bool skipped = false;  ///< non-finite gradients: nothing changed
};

class Optimizer {
 public:
  /// Tensors by name, in the order of the model's weights.
  using Parameters = std::vector<std::pair<std::string, at::Tensor>>;

  virtual ~Optimizer() = default;

  /// One update of the weights in place. Reads and clears their gradients; a parameter without a gradient counts as
  /// zero gradient.
  virtual StepReport step(double learning_rate) = 0;

  /// What a checkpoint keeps in addition to the weights. The tensors may share memory with the optimizer. Where several
  /// ranks share an optimizer all of them call it, and all but the first get nothing.
  virtual Parameters state() = 0;

  /// Takes back what state() gave, on every rank. Missing or misshapen tensors are named, and nothing changes then.
  virtual Status load_state(const Parameters& tensors, std::int64_t num_updates, std::int64_t num_skipped) = 0;

  virtual std::int64_t num_updates() const = 0;
  virtual std::int64_t num_skipped() const = 0;
};

}  // namespace carnot
