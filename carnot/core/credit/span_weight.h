// credit/span_weight.h -- ActFocus: tokens that the environment acts on get more weight (arXiv:2605.14558).
#pragma once

#include "carnot/core/base/fields.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

/// The signal that raises an action token's weight. The paper's is the reference's energy; the others are its
/// baselines.
enum class WeightSignal {
  ReferenceEnergy,   ///< -logsumexp of the frozen reference's raw logits
  ReferenceEntropy,  ///< of the frozen reference's softmax
  Surprisal,         ///< -log-probability under the old policy
  LogProbShift,      ///< log-probability under the old policy minus under the reference
};

struct SpanWeightOptions {
  double alpha = 0.1;     ///< weight of sampled tokens that are not an action
  double beta = 0.5;      ///< an action token weighs 1 + beta * sigmoid(z of its signal)
  double epsilon = 1e-8;  ///< added to the variance of the signal
  WeightSignal signal = WeightSignal::ReferenceEnergy;

  void fields(FieldVisitor& visit);
};

/// Multiplies `weight`. The z-score is computed over the action tokens of all included trajectories (population's
/// deviation); a token of a shared turn counts once per trajectory.
/// REQUIRES: the columns of the signal, unless beta is 0.
CreditRule span_weight(const SpanWeightOptions& options = {});

/// The weights of action tokens with these signals.
std::vector<double> action_weights(std::span<const double> signals, const SpanWeightOptions& options);

}  // namespace carnot
