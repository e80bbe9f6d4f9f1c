// branch/balanced_branch.h -- AEPO: entropy branching that penalises consecutive branches (arXiv:2510.14545).
#pragma once

#include "carnot/core/base/unread_keys.h"
#include "carnot/core/branch/branch.h"

namespace carnot {

enum class BalancedForm {
  Paper,  ///< u < clamp((base + weight * rise) * (1 - penalty * consecutive), 0, 1)
  Code,   ///< clamp((u + weight * rise) * max(0, 1 - penalty * consecutive), 0, 1) >= base
};

struct BalancedBranchOptions {
  BalancedForm form = BalancedForm::Paper;
  int initial = 8;  ///< trajectories from the prompt, if no probe divides the budget
  double base = 0.5;
  double weight = 0.2;
  double penalty = 0.2;  ///< per consecutive branch
  int beam = 2;
  bool probe = true;         ///< divide the budget by the entropies of one trajectory that is sampled first
  double probe_slope = 0.2;  ///< of the sigmoid in root entropy minus mean entropy after tool calls
  BranchTiming timing = BranchTiming::AfterObservation;
  BranchStreak streak = BranchStreak::Trajectory;
  TurnEntropyMeasure measure{};

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const;
};

std::unique_ptr<BranchPolicy> balanced_branch(const BalancedBranchOptions& options = {});

/// The published values of the form; the rest is shared with ARPO.
BalancedBranchOptions published_balanced_branch();

/// budget * sigmoid(slope * (root - mean of tool calls)): rounded down, within [1, budget] (Paper), or one more (Code).
/// Without tool calls, the root's entropy is used as their mean.
int balanced_budget(int budget, const EntropyProbe& probe, double slope, BalancedForm form);

}  // namespace carnot
