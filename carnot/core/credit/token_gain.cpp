#include "carnot/core/credit/token_gain.h"

#include <algorithm>

#include "carnot/core/credit/rule.h"

namespace carnot {
namespace {

using Returns = std::vector<std::vector<double>>;

std::vector<double> returns_of(const Trajectory& trajectory, double outcome, const TokenGainOptions& options) {
  std::vector<double> returns = token_gain_rewards(trajectory, outcome);
  const std::vector<bool> sampled = trajectory.sampled();
  const auto begin = static_cast<std::size_t>(response_begin(trajectory));
  double running = 0;
  for (std::size_t t = returns.size(); t-- > 0;) {
    returns[t] = running = returns[t] + options.discount * running;
    if (options.restart_at_observations && !sampled[begin + t]) running = 0;
  }
  return returns;
}

double column_mean(const Returns& returns, std::size_t column) {
  double sum = 0;
  for (const auto& of_member : returns) sum += column < of_member.size() ? of_member[column] : 0;
  return sum / static_cast<double>(returns.size());
}

/// The mean and deviation for each token's return, column by column.
std::vector<Standard> standards_of(const Returns& returns, const TokenGainOptions& options) {
  std::size_t width = 0;
  for (const auto& of_member : returns) width = std::max(width, of_member.size());
  if (options.baseline == TokenBaseline::FirstToken) {
    std::vector<double> first;
    for (const auto& of_member : returns)
      if (!of_member.empty()) first.push_back(of_member.front());
    return std::vector<Standard>(width, standard_of(first, options.normalisation));
  }
  std::vector<Standard> standards;
  for (std::size_t column = 0; column < width; ++column) standards.push_back({.centre = column_mean(returns, column)});
  return standards;
}

}  // namespace

std::vector<double> token_gain_rewards(const Trajectory& trajectory, double outcome) {
  const int begin = response_begin(trajectory);
  std::vector<double> rewards(trajectory.num_tokens() - begin, 0.0);
  for (int k = 0; k < trajectory.num_turns(); ++k) {
    const int last = trajectory.turn_offsets[static_cast<std::size_t>(k) + 1] - 1 - begin;
    if (trajectory.turn(k).info_gain && last >= 0) rewards[last] += *trajectory.turn(k).info_gain;
  }
  if (!rewards.empty()) rewards.back() += outcome;
  return rewards;
}

CreditRule token_gain(const TokenGainOptions& options) {
  const auto apply = [options](std::span<const Trajectory> trajectories, CreditTable& table) {
    for (const auto& members : members_by_group(trajectories)) {
      Returns returns;
      for (int i : members) returns.push_back(returns_of(trajectories[i], table[i].total_reward(), options));
      const std::vector<Standard> standards = standards_of(returns, options);
      for (std::size_t m = 0; m < members.size(); ++m) {
        const Trajectory& one = trajectories[members[m]];
        const std::vector<bool> sampled = one.sampled();
        const auto begin = static_cast<std::size_t>(response_begin(one));
        for (std::size_t t = 0; t < returns[m].size(); ++t)
          if (sampled[begin + t]) table[members[m]].advantage[begin + t] += standards[t].of(returns[m][t]);
      }
    }
  };
  return {.name = "token_gain", .apply = apply, .read = read_gains, .info_gain = true};
}

void GainQuirks::fields(FieldVisitor& visit) {
  visit.field("token_rewards", token_rewards,
              "November 2025: gains are token rewards, against the group's mean at the same token index");
  enum_field(visit, "token_baseline", token_baseline, {"column", "first_token"},
             "what token rewards are taken against: the mean at the same index, or the group's first tokens");
  visit.field("restart_at_observations", restart_at_observations, "sums of token rewards restart after observations");
  visit.field("forget_zero_gains", forget_zero_gains, "a gain of exactly 0 is lost and its turn joins the next");
}

void GainEstimatorOptions::fields(FieldVisitor& visit) { turns.fields(visit); }

UnreadKeys GainEstimatorOptions::unread_keys() const {
  UnreadKeys unread;
  unread.add(turns.unread_keys());
  if (!quirks.token_rewards)
    unread.add({"compat.token_baseline", "compat.restart_at_observations"}, "compat.token_rewards is false");
  if (quirks.token_rewards) unread.add({"pool", "compat.forget_zero_gains"}, "compat.token_rewards has its own form");
  if (quirks.token_rewards && quirks.token_baseline == TokenBaseline::Column)
    unread.add_all(turns.normalisation, "", "compat.token_baseline column takes the mean alone");
  return unread;
}

CreditRule gain_estimator(const GainEstimatorOptions& options) {
  TurnGainOptions turns = options.turns;
  if (options.quirks.forget_zero_gains) turns.steps = GainSteps::NonzeroGains;
  if (!options.quirks.token_rewards) return turn_gain(turns);
  return token_gain({.discount = turns.discount,
                     .baseline = options.quirks.token_baseline,
                     .normalisation = turns.normalisation,
                     .restart_at_observations = options.quirks.restart_at_observations});
}

}  // namespace carnot
