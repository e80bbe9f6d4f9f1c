// branch/entropy_branch.h -- ARPO: branch where entropy rose after a tool's answer (arXiv:2507.19849).
#pragma once

#include "carnot/base/fields.h"
#include "carnot/branch/branch.h"

namespace carnot {

struct EntropyBranchOptions {
  int initial = 8;      ///< trajectories from the prompt, at most the budget
  double base = 0.5;    ///< probability without a rise
  double weight = 0.2;  ///< of the rise
  int beam = 2;         ///< a place is asked beam - 1 times
  BranchTiming timing = BranchTiming::AfterObservation;
  TurnEntropyMeasure measure{};

  void fields(FieldVisitor& visit);
};

/// Branches with probability clamp(base + weight * (turn_entropy - initial_entropy), 0, 1).
std::unique_ptr<BranchPolicy> entropy_branch(const EntropyBranchOptions& options = {});

}  // namespace carnot
