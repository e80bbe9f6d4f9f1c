#include "carnot/studies/branch_statistics.h"

#include <numeric>
#include <set>
#include <utility>

#include "carnot/core/base/statistics.h"

namespace carnot {

std::vector<double> tool_turn_entropies(const Trajectory& trajectory) {
  std::vector<double> entropies;
  for (int k = 1; k < trajectory.num_turns(); ++k)
    if (trajectory.turn(k).turn_entropy) entropies.push_back(*trajectory.turn(k).turn_entropy);
  return entropies;
}

Streaks streaks(std::span<const std::vector<double>> trajectories, double threshold) {
  Streaks out;
  for (const std::vector<double>& entropies : trajectories)
    for (std::size_t k = 0; k < entropies.size(); ++k) {
      if (entropies[k] < threshold) continue;
      ++out.high;
      out.behind_any += k > 0 ? 1 : 0;
      out.consecutive += k > 0 && entropies[k - 1] >= threshold ? 1 : 0;
    }
  return out;
}

BranchReceivers branch_receivers(const Group& group) {
  BranchReceivers out;
  std::set<std::pair<const Tree*, int>> receivers;
  for (const Tree& tree : group.trees)
    for (const Leaf& leaf : tree.leaves) {
      if (leaf.parent < 0 || leaf.branch_turn < 1) continue;
      ++out.branches;
      receivers.emplace(&tree, leaf.parent);
    }
  out.receivers = static_cast<int>(receivers.size());
  return out;
}

std::optional<EntropyProbe> entropy_probe(const Trajectory& trajectory) {
  if (trajectory.num_turns() == 0 || !trajectory.turn(0).turn_entropy) return std::nullopt;
  return EntropyProbe{.root = *trajectory.turn(0).turn_entropy, .tool_calls = tool_turn_entropies(trajectory)};
}

std::optional<double> first_response_spread(const Group& group) {
  std::vector<double> entropies, surprisals;
  std::set<std::pair<const Tree*, int>> seen;
  for (const Trajectory& one : trajectories(std::span(&group, 1))) {
    const Turn& first = one.turn(0);
    if (!one.leaf().is_included() || first.num_sampled() == 0) continue;
    if (!seen.emplace(one.tree, one.turns[0]).second) continue;
    const auto sum = [&](Column column) {
      const auto& values = one.tree->columns.turn(column, one.turns[0]);
      return std::accumulate(values.begin() + first.sampled_begin, values.begin() + first.sampled_end, 0.0);
    };
    entropies.push_back(sum(Column::EntropyRollout));
    surprisals.push_back(-sum(Column::LogProbRollout));
  }
  if (entropies.size() < 2 || std_population(surprisals) == 0) return std::nullopt;
  return std_population(entropies) / std_population(surprisals);
}

}  // namespace carnot
