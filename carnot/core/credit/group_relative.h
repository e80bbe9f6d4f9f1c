// credit/group_relative.h -- GRPO: a trajectory's reward against its group's mean and deviation (arXiv:2402.03300).
#pragma once

#include "carnot/core/credit/against_group.h"

namespace carnot {

struct GroupRelativeOptions {
  Normalisation normalisation{};
  Statistics statistics = Statistics::Trajectories;

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const { return normalisation.unread_keys(); }
};

/// Adds (reward - mean of the group) / (std + epsilon) to every sampled token.
CreditRule group_relative(const GroupRelativeOptions& options = {});

}  // namespace carnot
