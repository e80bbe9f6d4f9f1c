// branch/entropy_branch.h -- ARPO: branches where entropy rose after a tool call (arXiv:2507.19849).
#pragma once

#include "carnot/core/base/unread_keys.h"
#include "carnot/core/branch/branch.h"

namespace carnot {

enum class EntropyBranchRule {
  Probability,  ///< branch with probability clamp(base + weight * rise, 0, 1): the published program
  Threshold,    ///< branch where base + weight * rise > threshold: the paper
};

struct EntropyBranchOptions {
  EntropyBranchRule rule = EntropyBranchRule::Probability;
  int initial = 8;      ///< trajectories from the prompt, at most the budget
  double base = 0.5;    ///< probability if entropy does not rise
  double weight = 0.2;  ///< factor of the rise
  double threshold = 0.5;
  int beam = 2;  ///< beam - 1 decisions are taken per place
  BranchTiming timing = BranchTiming::AfterObservation;
  TurnEntropyMeasure measure{};

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const;
};

/// Decides by base + weight * rise, rise = turn_entropy - initial_entropy, as `rule` says.
std::unique_ptr<BranchPolicy> entropy_branch(const EntropyBranchOptions& options = {});

}  // namespace carnot
