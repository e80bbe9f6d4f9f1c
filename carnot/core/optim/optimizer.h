// optim/optimizer.h -- what training needs of an optimizer: one update with the accumulated gradients, and its state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct StepReport {
  double grad_norm = 0;  ///< before clipping; not finite where the step was skipped
  bool skipped = false;  ///< non-finite gradients: nothing changed
};

enum class WeightKind {
  Vector,  ///< a norm or a bias; never decays
  Table,   ///< a row per token: embedding and head
  Matrix,  ///< any other
};

/// A trained tensor, contiguous. Optimizers update it in place.
struct Weight {
  std::string name{};
  at::Tensor values{};
  bool is_table = false;

  WeightKind kind() const {
    if (values.dim() < 2) return WeightKind::Vector;
    return is_table ? WeightKind::Table : WeightKind::Matrix;
  }
};

class Optimizer {
 public:
  /// Tensors by name.
  using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

  virtual ~Optimizer() = default;

  /// One update of the weights in place. Reads and clears their gradients; a weight without a gradient counts as zero
  /// gradient.
  virtual StepReport step(double learning_rate) = 0;

  /// What a checkpoint keeps in addition to the weights. The tensors may share memory with the optimizer. Where several
  /// ranks share an optimizer all of them call it, and all but the first get nothing.
  virtual Tensors state() = 0;

  /// Takes back what state() gave, on every rank. Missing or misshapen tensors are named, and nothing changes then.
  virtual Status load_state(const Tensors& tensors, std::int64_t num_updates, std::int64_t num_skipped) = 0;

  virtual std::int64_t num_updates() const = 0;
  virtual std::int64_t num_skipped() const = 0;
};

}  // namespace carnot
