// studies/branch_statistics.h -- where rollouts branch: streaks of uncertain turns, and who receives the branches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "carnot/core/branch/branch.h"
#include "carnot/core/data/trajectory.h"

namespace carnot {

/// The entropies after tool calls of one trajectory, turn by turn, in reading order: the turn's stored turn_entropy,
/// which every rollout of ours has. Turns without one are left out, as is the first, which answers the prompt.
std::vector<double> tool_turn_entropies(const Trajectory& trajectory);

/// Turns whose entropy is at or above a threshold.
struct Streaks {
  std::int64_t high = 0;         ///< such turns
  std::int64_t consecutive = 0;  ///< of those, directly after another one of the same trajectory
  std::int64_t behind_any = 0;   ///< of those, after another turn at all: what could be consecutive

  double share() const { return high == 0 ? 0 : static_cast<double>(consecutive) / static_cast<double>(high); }
};
Streaks streaks(std::span<const std::vector<double>> trajectories, double threshold);

/// Who received the branches of one group.
struct BranchReceivers {
  int branches = 0;
  int receivers = 0;  ///< distinct trajectories that another one left
};
/// By leaves: one branches off where it names a parent and shares turns with it.
BranchReceivers branch_receivers(const Group& group);

/// Root and tool-call entropies of a trajectory, as AEPO divides the budget by those of a group's first; empty if they
/// were not measured.
std::optional<EntropyProbe> entropy_probe(const Trajectory& trajectory);

/// How much a group's first responses differ, which answer one state: the deviation (divided by n) of the sums of their
/// rollout entropies over that of their surprisals (AEM, F.4). A response that branches share counts once; one of an
/// excluded trajectory does not. Empty where fewer than two are left, or all have one surprisal.
std::optional<double> first_response_spread(const Group& group);

}  // namespace carnot
