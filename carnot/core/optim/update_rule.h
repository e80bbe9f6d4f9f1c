// optim/update_rule.h -- what distinguishes one optimizer from another: what it keeps of a weight, and how it updates
// it.
//
// Clipping, weight decay, master weights, rounding, checkpoints and ranks are the same for all (optim/weight_parts.h,
// optim/local_optimizer.h, collectives/sharded_optimizer.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/optim/optimizer.h"

namespace carnot {

/// One update of one weight.
struct UpdateStep {
  std::int64_t number = 1;  ///< of the updates so far, this one included
  double learning_rate = 0;
  double gradient_scale = 1;  ///< of the clipping
  double keep = 1;            ///< 1 - learning rate x decay: what is left of the weight
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// Suffixes that name what is kept of each element between updates, in the state and by stochastic rounding.
  virtual std::vector<std::string> kept(WeightKind kind) const = 0;

  /// Updates some elements of a weight and what is kept of them, all contiguous, alike in shape, of float32 or float64,
  /// on one device. Each element by itself, so that any cut into parts gives the same bits.
  virtual void update(const UpdateStep& step, const at::Tensor& gradient, at::Tensor& weight,
                      std::span<at::Tensor> kept) const = 0;

  /// Whether weights of this kind move along a direction that depends on the whole matrix:
  /// weight = keep weight - learning_rate direction. Then begin_direction() and finish_direction() take update()'s
  /// place.
  virtual bool needs_matrix(WeightKind) const { return false; }

  /// The part of the direction that is computed for each element by itself, in the place of the gradient.
  virtual void begin_direction(const UpdateStep&, at::Tensor& /*gradient*/, std::span<at::Tensor> /*kept*/) const {}
  /// The rest, in place. The same bits on any number of threads.
  virtual void finish_direction(at::Tensor& /*direction_MN*/) const {}
};

}  // namespace carnot
