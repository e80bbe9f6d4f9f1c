// branch/entropy_branch.h -- ARPO: branch where entropy rose after a tool's answer (arXiv:2507.19849).
#pragma once

#include "carnot/base/unread_keys.h"
#include "carnot/branch/branch.h"

namespace carnot {

enum class EntropyBranchRule {
  Probability,  ///< branch with probability clamp(base + weight * rise, 0, 1): the published program
  Threshold,    ///< branch where base + weight * rise > threshold: the paper
};

struct EntropyBranchOptions {
  EntropyBranchRule rule = EntropyBranchRule::Probability;
  int initial = 8;      ///< trajectories from the prompt, at most the budget
  double base = 0.5;    ///< probability without a rise
  double weight = 0.2;  ///< of the rise
  double threshold = 0.5;
  int beam = 2;  ///< a place is asked beam - 1 times
  BranchTiming timing = BranchTiming::AfterObservation;
  TurnEntropyMeasure measure{};

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const;
};

/// Decides by base + weight * rise, rise = turn_entropy - initial_entropy, as `rule` says.
std::unique_ptr<BranchPolicy> entropy_branch(const EntropyBranchOptions& options = {});

}  // namespace carnot
