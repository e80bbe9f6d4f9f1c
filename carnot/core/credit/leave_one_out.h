// credit/leave_one_out.h -- RLOO: a trajectory's reward against the mean of the others (arXiv:2402.14740).
#pragma once

#include "carnot/core/credit/against_group.h"

namespace carnot {

struct LeaveOneOutOptions {
  Singleton singleton = Singleton::Zero;
  Statistics statistics = Statistics::Trajectories;

  void fields(FieldVisitor& visit);
};

/// Adds n / (n - 1) * (reward - mean of the group) to every sampled token.
CreditRule leave_one_out(const LeaveOneOutOptions& options = {});

}  // namespace carnot
