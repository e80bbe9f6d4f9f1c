// credit/group_relative.h -- a trajectory's reward against its group: with its mean and deviation (GRPO), or with the
// mean of the others (RLOO).
#pragma once

#include <functional>

#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

/// What is counted once in a group's statistics. Rows are turns, as in systems that train on every environment step as
/// a separate sequence: a row's reward is the trajectory's, with the penalty of that turn instead of all turns.
enum class Statistics {
  Trajectories,
  Rows,       ///< every turn with sampled tokens: long trajectories weigh more
  FirstRows,  ///< the first such turn of each trajectory; credit still goes to every row
};

/// Visits `statistics`.
void statistics_field(FieldVisitor& visit, Statistics& statistics);

/// A rule that adds standard(rewards of the group).of(reward) to every sampled token, group by group.
CreditRule against_group(std::string name, Statistics statistics,
                         std::function<Standard(std::span<const double> rewards)> standard);

/// One turn as a row of a group's statistics.
struct CreditRow {
  int trajectory = 0;
  int turn = 0;
  double reward = 0;
};

/// The turns of `members` that have sampled tokens, in order.
std::vector<CreditRow> rows_of(std::span<const Trajectory> trajectories, const CreditTable& table,
                               std::span<const int> members);

/// Rewards of the counted rows. REQUIRES: statistics is Rows or FirstRows.
std::vector<double> counted_rewards(std::span<const CreditRow> rows, Statistics statistics);

/// GRPO (arXiv:2402.03300).
struct GroupRelativeOptions {
  Normalisation normalisation{};
  Statistics statistics = Statistics::Trajectories;

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const { return normalisation.unread_keys(); }
};

/// Adds (reward - mean of the group) / (std + epsilon) to every sampled token.
CreditRule group_relative(const GroupRelativeOptions& options = {});

/// RLOO, a trajectory's reward against the mean of the others (arXiv:2402.14740).
struct LeaveOneOutOptions {
  Singleton singleton = Singleton::Zero;
  Statistics statistics = Statistics::Trajectories;

  void fields(FieldVisitor& visit);
};

/// Adds n / (n - 1) * (reward - mean of the group) to every sampled token.
CreditRule leave_one_out(const LeaveOneOutOptions& options = {});

}  // namespace carnot
