// optim/weight_parts.h -- weights, or parts of them, as an optimizer updates them by given gradients.
//
// A bfloat16 weight is one half of a float32 master weight, its nearest; the other half, 16 bits, is kept beside it.
// What is kept in bfloat16 alone is computed in float32 and rounded up or down stochastically (optim/rounding.h); to
// the nearest, a step below half of the last bit would be lost every time. Each element is updated by itself, or along
// a direction of the whole matrix: how weights are cut changes no bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/optim/options.h"
#include "carnot/core/optim/update_rule.h"

namespace carnot {

/// Elements of a weight, one after the other.
struct WeightPart {
  std::string name{};      ///< of the weight
  at::Tensor values{};     ///< contiguous, the weight's own memory
  std::int64_t first = 0;  ///< number of their first in the weight
  WeightKind kind = WeightKind::Vector;
};

/// What a part that begins with element `first` of a weight is called in the state: the weight's name, if with the
/// first one, as a whole weight does.
std::string name_of_part(const std::string& weight, std::int64_t first);

class WeightParts {
 public:
  using Tensors = Optimizer::Tensors;

  /// The parts, which do not overlap, are updated in place.
  WeightParts(std::vector<WeightPart> parts, const OptimizerOptions& options);

  const UpdateRule& rule() const { return *rule_; }
  std::size_t size() const { return slots_.size(); }

  /// Begins an update, unless the global norm of all gradients, those of other parts as well, is not finite. Then each
  /// part is updated once, by update() or by direction() and move(), as its kind needs.
  StepReport begin(double learning_rate, double norm);

  /// Updates part number `i` by its gradient, of its shape; an undefined one counts as zeros.
  void update(std::size_t i, const at::Tensor& gradient);

  /// The part of its matrix's direction, not finished yet, in the shape of the part.
  at::Tensor direction(std::size_t i, const at::Tensor& gradient);
  /// By a finished direction.
  void move(std::size_t i, const at::Tensor& direction);

  /// What the rule keeps, and the master weights' other halves if there are any, by the parts' names. They share memory
  /// with this.
  Tensors state() const;
  /// Of the weights as they are when this is called.
  Status load_state(const Tensors& tensors, std::int64_t num_updates, std::int64_t num_skipped);

  std::int64_t num_updates() const { return step_.number; }
  std::int64_t num_skipped() const { return num_skipped_; }

 private:
  struct Slot {
    WeightPart part{};
    at::Tensor residual{};  ///< the master weights' other halves (int16); undefined: the weights are all there is
    std::vector<std::string> names{};
    std::vector<at::Tensor> kept{};
  };
  /// Gets the number of a piece's first element in the part, and what is kept of its elements, which it may change.
  using PieceBody = std::function<void(std::int64_t first, std::span<at::Tensor> kept)>;

  UpdateStep step_of(const Slot& slot) const;
  at::Tensor gradient_of(const Slot& slot, const at::Tensor& gradient) const;
  void each_piece(Slot& slot, const PieceBody& body);
  void finish(Slot& slot);

  OptimizerOptions options_;
  std::unique_ptr<UpdateRule> rule_;
  std::vector<Slot> slots_;
  UpdateStep step_{.number = 0};  ///< `number` counts the updates
  std::int64_t num_skipped_ = 0;
};

/// The tensors that an optimizer keeps of a weight in addition to its values.
struct KeptTensor {
  std::string suffix{};  ///< of the weight's name in the state
  at::ScalarType type = at::kFloat;
};
std::vector<KeptTensor> kept_tensors(const UpdateRule& rule, const OptimizerOptions& options, WeightKind kind,
                                     at::ScalarType weight);

/// Names in `given` that are missing, misshapen, of another number type, or that belong to nothing in `expected`, of
/// which only shapes and types count.
Status check_optimizer_state(const Optimizer::Tensors& expected, const Optimizer::Tensors& given);

}  // namespace carnot
