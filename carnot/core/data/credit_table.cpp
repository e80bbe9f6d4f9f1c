#include "carnot/core/data/credit_table.h"

#include <cmath>

namespace carnot {
namespace {

std::vector<double> starting_rewards(const Trajectory& trajectory) {
  std::vector<double> reward(trajectory.num_tokens(), 0.0);
  if (reward.empty() || !trajectory.leaf().is_included()) return reward;
  if (trajectory.tree->columns.has(Column::Reward)) {
    const std::vector<double> dense = trajectory.column(Column::Reward);
    for (std::size_t i = 0; i < reward.size(); ++i)
      if (!std::isnan(dense[i])) reward[i] = dense[i];
  }
  reward[trajectory.reward_token()] += trajectory.penalised_score();
  return reward;
}

}  // namespace

double Credit::total_reward() const {
  double sum = 0;
  for (double r : reward) sum += r;
  return sum;
}

CreditTable fresh_credit(std::span<const Trajectory> trajectories) {
  CreditTable table;
  table.reserve(trajectories.size());
  for (const Trajectory& trajectory : trajectories) {
    const auto size = static_cast<std::size_t>(trajectory.num_tokens());
    table.push_back({.advantage = std::vector<double>(size, 0.0),
                     .weight = std::vector<double>(size, 1.0),
                     .clip_scale = std::vector<double>(size, 1.0),
                     .value_target = std::vector<double>(size, std::numeric_limits<double>::quiet_NaN()),
                     .reward = starting_rewards(trajectory)});
  }
  return table;
}

}  // namespace carnot
