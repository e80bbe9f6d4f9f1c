// credit/group_estimator.h -- the group baselines, chosen by name.
#pragma once

#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

enum class GroupEstimator {
  GroupRelative,   ///< group_relative()
  LengthWeighted,  ///< length_weighted_baseline(); reads only `singleton`
  NonzeroScaled,   ///< nonzero_scaled(); reads only `singleton`
  BestOfGroup,     ///< best_of_group(); reads divide_by_std and epsilon
};

struct GroupEstimatorOptions {
  GroupEstimator estimator = GroupEstimator::GroupRelative;
  GroupRelativeOptions group{};

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const;
};

CreditRule group_estimator(const GroupEstimatorOptions& options);

/// OPO (arXiv:2505.23585): reward minus the group's mean reward weighted by sampled tokens.
CreditRule length_weighted_baseline(Singleton singleton = Singleton::Zero);

/// GPG (arXiv:2504.02546): reward minus the group's mean, times (trajectories / those with a reward other than 0).
CreditRule nonzero_scaled(Singleton singleton = Singleton::Zero);

struct BestOfGroupOptions {
  bool divide_by_std = true;
  double epsilon = 1e-6;
};
/// GRPO for pass@k (arXiv:2503.19595): only the best of a group gets credit, its lead over the second; on a tie, no
/// trajectory does.
CreditRule best_of_group(const BestOfGroupOptions& options = {});

}  // namespace carnot
