#include "carnot/credit/reward.h"

#include "carnot/base/check.h"

namespace carnot {
namespace {

void place_turn_rewards(const Trajectory& trajectory, std::vector<double>& reward) {
  if (reward.empty()) return;
  reward[static_cast<std::size_t>(trajectory.reward_token())] -= trajectory.penalised_score();
  for (int k = 0; k < trajectory.num_turns(); ++k)
    reward[static_cast<std::size_t>(trajectory.reward_token(k + 1))] += trajectory.turn(k).reward + trajectory.turn(k).penalty;
}

void subtract_kl(const Trajectory& trajectory, std::vector<double>& reward, double coefficient) {
  const std::vector<double> old = trajectory.column(Column::LogProbOld);
  const std::vector<double> reference = trajectory.column(Column::LogProbReference);
  const std::vector<bool> sampled = trajectory.sampled();
  for (std::size_t t = 0; t < reward.size(); ++t)
    if (sampled[t]) reward[t] -= coefficient * (old[t] - reference[t]);
}

}  // namespace

CreditRule turn_rewards() {
  return {.name = "turn_rewards", .apply = [](std::span<const Trajectory> trajectories, CreditTable& table) {
            for (std::size_t i = 0; i < trajectories.size(); ++i)
              if (trajectories[i].leaf().counts()) place_turn_rewards(trajectories[i], table[i].reward);
          }};
}

CreditRule kl_in_reward(double coefficient) {
  return {.name = "kl_in_reward", .apply = [coefficient](std::span<const Trajectory> trajectories, CreditTable& table) {
            if (coefficient == 0) return;
            for (std::size_t i = 0; i < trajectories.size(); ++i)
              if (trajectories[i].leaf().counts()) subtract_kl(trajectories[i], table[i].reward, coefficient);
          }};
}

}  // namespace carnot
