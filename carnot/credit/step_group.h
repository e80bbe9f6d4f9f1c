// credit/step_group.h -- GiGPO: a turn against other turns that began in the same state (arXiv:2505.10978).
#pragma once

#include <string>

#include "carnot/credit/normalise.h"
#include "carnot/credit/rule.h"

namespace carnot {

struct StepGroupOptions {
  double weight = 1;       ///< of the step advantage next to the base's
  double discount = 0.95;  ///< of rewards inside a trajectory, per turn
  Normalisation normalisation{};
  /// Turns whose states are at least this alike share a group (credit/similarity.h); 1: only equal states do.
  double similarity = 1;

  void fields(FieldVisitor& visit);
};

/// Adds weight * (return of the turn against its step group) to the turn's sampled tokens. The return is the
/// discounted sum of raw turn rewards from there on, plus the turn's own penalty. Turns of one group of rollouts
/// share a step group where their anchors are equal, revisits by one trajectory included; a turn without an anchor is
/// alone.
CreditRule step_group(const StepGroupOptions& options = {});

/// Step groups of turns with these anchors: the index of the first turn of each one's group. With similarity below
/// 1, greedy in order: the first group whose first member is alike enough.
std::vector<int> group_anchors(std::span<const std::string> anchors, double similarity);

/// Discounted sums of the rewards of a trajectory's turns, from each one on.
std::vector<double> turn_returns(std::span<const double> rewards, double discount);

}  // namespace carnot
