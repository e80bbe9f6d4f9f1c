// credit/group_estimator.h -- the group baselines, chosen by name.
#pragma once

#include "carnot/core/credit/group_relative.h"

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

}  // namespace carnot
