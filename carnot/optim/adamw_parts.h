// optim/adamw_parts.h -- AdamW (Loshchilov and Hutter 2019) of tensors, or of parts of them, by given gradients.
//
// What is kept in bfloat16 between updates is computed in float32 and rounded up or down stochastically
// (optim/stochastic_rounding.h); to the nearest, a step below half of the last bit would be lost every time.
// Each element is updated by itself: how tensors are cut into parts changes no bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/base/fields.h"
#include "carnot/optim/adamw_kernel.h"
#include "carnot/optim/optimizer.h"

namespace carnot {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  ///< decoupled; matrices only, never norms and biases
  double max_grad_norm = 1.0;
  bool master_weights = true;       ///< a float32 copy of bfloat16 weights
  std::string moments = "float32";  ///< float32 (float64 for float64 weights) | bfloat16

  void fields(FieldVisitor& visit);
};

/// Elements of a weight, one after the other.
struct WeightPart {
  std::string name{};      ///< of the weight
  at::Tensor values{};     ///< contiguous, the weight's own memory
  std::int64_t first = 0;  ///< number of their first in the weight
  bool decays = false;     ///< of a matrix
};

/// What a part that begins with element `first` of a weight is called in the state: the weight's name, if with the
/// first one, as a whole weight does.
std::string name_of_part(const std::string& weight, std::int64_t first);

class AdamWParts {
 public:
  using Parameters = Optimizer::Parameters;

  /// The parts, which do not overlap, are updated in place.
  AdamWParts(std::vector<WeightPart> parts, const AdamWOptions& options);

  /// One update by the parts' gradients, each of its part's shape; an undefined one counts as zeros. `norm` is the
  /// global norm of all gradients, those of other parts as well.
  StepReport step(double learning_rate, const std::vector<at::Tensor>& gradients, double norm);

  /// Moments, and master weights where there are any, by the parts' names. They share memory with this.
  Parameters state() const;
  Status load_state(const Parameters& tensors, std::int64_t num_updates, std::int64_t num_skipped);

  std::int64_t num_updates() const { return num_updates_; }
  std::int64_t num_skipped() const { return num_skipped_; }

 private:
  struct Slot {
    WeightPart part;
    at::Tensor master, first, second;  ///< without a copy, `master` is the weight's own memory
  };
  void update(Slot& slot, const AdamWUpdate& update, const at::Tensor& gradient);

  std::vector<Slot> slots_;
  AdamWOptions options_;
  std::int64_t num_updates_ = 0;
  std::int64_t num_skipped_ = 0;
};

/// Names in `given` that are missing, misshapen, of another number type, or that belong to nothing in `expected`, of
/// which only shapes and types count.
Status check_optimizer_state(const Optimizer::Parameters& expected, const Optimizer::Parameters& given);

}  // namespace carnot
