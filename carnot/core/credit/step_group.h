// credit/step_group.h -- GiGPO: compares a turn with other turns that began in the same state (arXiv:2505.10978).
#pragma once

#include <string>
#include <string_view>

#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

struct StepGroupOptions {
  double weight = 1;       ///< of the step advantage, relative to the base's
  double discount = 0.95;  ///< per turn, of rewards inside a trajectory
  Normalisation normalisation{};
  /// Turns whose states are at least this similar share a group (similarity()); 1: only equal states do.
  double similarity = 1;

  void fields(FieldVisitor& visit);
};

/// Adds weight * (return of the turn against its step group) to the turn's sampled tokens. The return is the discounted
/// sum of raw rewards from this turn on, plus the turn's own penalty. Turns of one group of rollouts share a step group
/// if their anchors are equal, including revisits by one trajectory; a turn without an anchor is alone.
CreditRule step_group(const StepGroupOptions& options = {});

/// Step groups of turns with these anchors: for each turn, the index of its group's first turn. With similarity below
/// 1, assigned greedily in order: to the first group whose first member is similar enough.
std::vector<int> group_anchors(std::span<const std::string> anchors, double similarity);

/// Discounted sums of the rewards of a trajectory's turns, from each turn on.
std::vector<double> turn_returns(std::span<const double> rewards, double discount);

/// String similarity as defined by Ratcliff and Obershelp: 2 M / (|a| + |b|) in code points, where M is the number of
/// characters in recursively longest common blocks; 1 for two empty strings. Equals Python's
/// difflib.SequenceMatcher(None, a, b).ratio(), including its rule for popular characters: if `b` has 200 characters or
/// more, one that makes up over 1 % of it starts no block.
double similarity(std::string_view a, std::string_view b);

}  // namespace carnot
