// credit/group_estimator.h -- the ways to compare a trajectory with its group, chosen by name.
#pragma once

#include "carnot/credit/group_relative.h"

namespace carnot {

enum class GroupEstimator {
  GroupRelative,   ///< group_relative()
  LengthWeighted,  ///< length_weighted_baseline(), reads the singleton alone
  NonzeroScaled,   ///< nonzero_scaled(), reads the singleton alone
  BestOfGroup,     ///< best_of_group(), reads divide_by_std and epsilon
};

struct GroupEstimatorOptions {
  GroupEstimator estimator = GroupEstimator::GroupRelative;
  GroupRelativeOptions group{};

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const;
};

CreditRule group_estimator(const GroupEstimatorOptions& options);

}  // namespace carnot
