// credit/critic_advantage.h -- shared by rules that learn from a critic: recursion, targets and whitening.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

/// Generalised advantage estimation (arXiv:1506.02438, Eq. 16) from the last step to the first:
/// A = r + gamma V' - V + gamma lambda A', where V' and A' belong to the next step.
class AdvantageRecursion {
 public:
  AdvantageRecursion(double gamma, double lambda) : gamma_(gamma), lambda_(lambda) {}

  /// The advantage of the step before those passed so far.
  double step(double reward, double value) {
    const double delta = reward + gamma_ * next_value_ - value;
    next_value_ = value;
    return running_ = delta + gamma_ * lambda_ * running_;
  }

  /// Starts again: the next call of step() is for a last step.
  void restart() { next_value_ = running_ = 0; }

 private:
  double gamma_, lambda_;
  double next_value_ = 0, running_ = 0;
};

/// One trajectory's advantages, token by token, from its token rewards and the critic's values.
using CriticAdvantages = std::function<std::vector<double>(const Trajectory& trajectory, std::span<const double> reward,
                                                           std::span<const double> value)>;

/// A base rule: adds the advantages to sampled tokens of included trajectories, optionally whitened over the step, and
/// sets value_target = advantage before whitening + value. REQUIRES: Column::Value.
CreditRule critic_rule(std::string name, CriticAdvantages advantages, std::optional<Whitening> whitening);

}  // namespace carnot
