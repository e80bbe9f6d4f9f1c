#include "carnot/core/credit/bilevel_gae.h"

#include "carnot/core/credit/critic_advantage.h"

namespace carnot {
namespace {

std::vector<bool> turn_ends(const Trajectory& trajectory, std::span<const double> reward, bool at_rewards) {
  std::vector<bool> ends(reward.size(), false);
  for (std::size_t t = 0; at_rewards && t < reward.size(); ++t) ends[t] = reward[t] != 0;
  for (int k = 0; !at_rewards && k < trajectory.num_turns(); ++k)
    if (trajectory.turn(k).num_sampled() > 0) ends[trajectory.sampled_end(k) - 1] = true;
  return ends;
}

/// GAE over the turn ends only; each end's return is stored at its position.
std::vector<double> end_returns(std::span<const double> reward, std::span<const double> value,
                                const std::vector<bool>& ends, const BilevelGaeOptions& options) {
  std::vector<double> returns(reward.begin(), reward.end());
  AdvantageRecursion recursion(options.turn_gamma, options.lambda);
  for (std::size_t t = reward.size(); t-- > 0;)
    if (ends[t]) returns[t] = recursion.step(reward[t], value[t]) + value[t];
  return returns;
}

std::vector<double> advantages(const Trajectory& trajectory, std::span<const double> reward,
                               std::span<const double> value, const BilevelGaeOptions& options) {
  const std::vector<bool> sampled = trajectory.sampled();
  const std::vector<bool> ends = turn_ends(trajectory, reward, options.turns_end_at_rewards);
  const std::vector<double> returns = end_returns(reward, value, ends, options);
  std::vector<double> advantage(value.size(), 0.0);
  AdvantageRecursion recursion(options.gamma, options.lambda);
  for (std::size_t t = value.size(); t-- > 0;) {
    if (!sampled[t]) continue;
    if (ends[t]) recursion.restart();
    advantage[t] = recursion.step(returns[t], value[t]);
  }
  return advantage;
}

}  // namespace

CreditRule bilevel_gae(const BilevelGaeOptions& options) {
  const auto of_trajectory = [options](const Trajectory& trajectory, std::span<const double> reward,
                                       std::span<const double> value) {
    return advantages(trajectory, reward, value, options);
  };
  return critic_rule("bilevel_gae", of_trajectory, options.whiten ? std::optional(options.whitening) : std::nullopt);
}

}  // namespace carnot
