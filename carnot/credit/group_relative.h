// credit/group_relative.h -- GRPO: a trajectory's reward against its group's (arXiv:2402.03300, eq. 3 ff.).
#pragma once

#include "carnot/credit/normalise.h"
#include "carnot/credit/rule.h"

namespace carnot {

/// What is counted once in a group's statistics. Rows are turns, as in systems that train every environment step as a
/// sequence of its own: a row's reward is the trajectory's, with the penalty of that turn instead of all of them.
enum class Statistics {
  Trajectories,
  Rows,       ///< every turn with sampled tokens: long trajectories weigh more
  FirstRows,  ///< the first such turn of each trajectory; credit still goes to every row
};

struct GroupRelativeOptions {
  Normalisation normalisation{};
  Statistics statistics = Statistics::Trajectories;

  void fields(FieldVisitor& visit);
};

/// Adds (reward - mean of the group) / (std + epsilon) to every sampled token.
CreditRule group_relative(const GroupRelativeOptions& options = {});

/// One turn as a row of a group's statistics.
struct CreditRow {
  int trajectory = 0;
  int turn = 0;
  double reward = 0;
};

/// The rows of `members`, in order.
std::vector<CreditRow> rows_of(std::span<const Trajectory> trajectories, const CreditTable& table,
                               std::span<const int> members);

/// The rewards that enter the statistics. REQUIRES: statistics is Rows or FirstRows.
std::vector<double> counted_rewards(std::span<const CreditRow> rows, Statistics statistics);

}  // namespace carnot
