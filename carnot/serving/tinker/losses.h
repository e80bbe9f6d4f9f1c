// serving/tinker/losses.h -- the losses of forward_backward, each a sum over all tokens of all data.
//
// With p the log-probability of a target under the trained weights, q the one it was sampled with, A its advantage and
// w its weight, a token's loss is
//
//   cross_entropy         -w p
//   importance_sampling   -exp(p - q) A
//   ppo                   -min(exp(p - q) A, clip(exp(p - q), low, high) A)
//   cispo                 -clip(exp(p - q), low, high) A p, the gradient through p alone
//   dro                   -(A p - beta / 2 (p - q)^2)
//
// with low = clip_low_threshold (0.8) and high = clip_high_threshold (1.2). Sums, not means: who scales the advantages
// chooses the denominator.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/serving/tinker/wire.h"

namespace carnot {

class TinkerLoss {
 public:
  virtual ~TinkerLoss() = default;

  /// The losses of a datum's tokens, in nats; float64, with a gradient through `log_probs_T`.
  virtual at::Tensor of_tokens(const TinkerDatum& datum, const at::Tensor& log_probs_T) const = 0;
};

/// Whether a loss is one of these.
bool is_tinker_loss(const std::string& name);

/// The loss that the request names, once its settings and each datum's tensors were checked: `target_tokens`, and what
/// the loss reads, one number a token. The error lists what is wrong, up to a limit.
Result<std::unique_ptr<TinkerLoss>> make_tinker_loss(const ForwardBackwardRequest& request);

}  // namespace carnot
