#include "carnot/core/credit/gae.h"

#include <cmath>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

std::vector<double> advantages(const Trajectory& trajectory, std::span<const double> reward,
                               std::span<const double> value, const GaeOptions& options) {
  const std::vector<bool> sampled = trajectory.sampled();
  std::vector<double> advantage(value.size(), 0.0);
  AdvantageRecursion recursion(options.gamma, options.lambda);
  for (std::size_t t = value.size(); t-- > 0;) {
    if (options.skip_unsampled && !sampled[t]) continue;
    advantage[t] = recursion.step(reward[t], std::isnan(value[t]) && !sampled[t] ? 0 : value[t]);
  }
  return advantage;
}

void read_critic(std::span<const Trajectory> trajectories, const CreditTable& table, const CriticAdvantages& advantages,
                 RuleReadings& readings) {
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    const std::vector<double> value = trajectories[i].column(Column::Value);
    readings.set_list("token reward", i, table[i].reward);
    readings.set_list("value", i, value);
    readings.set_list("advantage before whitening", i, advantages(trajectories[i], table[i].reward, value));
  }
}

void add_advantages(std::span<const Trajectory> trajectories, CreditTable& table, const CriticAdvantages& advantages,
                    const std::optional<Whitening>& whitening) {
  std::vector<std::vector<double>> advantage(trajectories.size());
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    const Trajectory& one = trajectories[i];
    if (!one.leaf().is_included()) continue;
    CARNOT_CHECK(one.tree->columns.has(Column::Value), "the rule needs the critic's values");
    const std::vector<double> value = one.column(Column::Value);
    advantage[i] = advantages(one, table[i].reward, value);
    const std::vector<bool> sampled = one.sampled();
    for (std::size_t t = 0; t < value.size(); ++t)
      if (sampled[t]) table[i].value_target[t] = advantage[i][t] + value[t];
  }
  if (whitening) whiten_sampled(trajectories, advantage, *whitening);
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    const std::vector<bool> sampled = trajectories[i].sampled();
    for (std::size_t t = 0; t < advantage[i].size(); ++t)
      if (sampled[t]) table[i].advantage[t] += advantage[i][t];
  }
}

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

void GaeOptions::fields(FieldVisitor& visit) {
  visit.field("gamma", gamma, "discount per sampled token", between(0, 1));
  visit.field("lambda", lambda, "0: one-step differences, 1: whole returns", between(0, 1));
  visit.field("whiten", whiten, "normalise advantages over all sampled tokens of the step");
  section(visit, "whitening", whitening, "how they are normalised");
}

UnreadKeys GaeOptions::unread_keys() const {
  UnreadKeys unread;
  if (!whiten) unread.add_all(whitening, "whitening", "whiten is false");
  return unread;
}

CreditRule gae(const GaeOptions& options) {
  const auto of_trajectory = [options](const Trajectory& trajectory, std::span<const double> reward,
                                       std::span<const double> value) {
    return advantages(trajectory, reward, value, options);
  };
  return critic_rule("gae", of_trajectory, options.whiten ? std::optional(options.whitening) : std::nullopt);
}

CreditRule critic_rule(std::string name, CriticAdvantages advantages, std::optional<Whitening> whitening) {
  return {.name = std::move(name),
          .apply = [advantages, whitening](
                       std::span<const Trajectory> trajectories,
                       CreditTable& table) { add_advantages(trajectories, table, advantages, whitening); },
          .read = [advantages](std::span<const Trajectory> trajectories, const CreditTable& table,
                               RuleReadings& readings) { read_critic(trajectories, table, advantages, readings); },
          .columns = {Column::Value},
          .sets_value_target = true};
}

CreditRule bilevel_gae(const BilevelGaeOptions& options) {
  const auto of_trajectory = [options](const Trajectory& trajectory, std::span<const double> reward,
                                       std::span<const double> value) {
    return advantages(trajectory, reward, value, options);
  };
  return critic_rule("bilevel_gae", of_trajectory, options.whiten ? std::optional(options.whitening) : std::nullopt);
}

void CriticQuirks::fields(FieldVisitor& visit) {
  visit.field("through_observations", through_observations,
              "older code: the recursion runs through observations too (not bilevel)");
  visit.field("turns_end_at_rewards", turns_end_at_rewards,
              "bilevel: a turn ends where a token's reward is not 0, instead of where it was sampled");
}

void CriticEstimatorOptions::fields(FieldVisitor& visit) {
  gae.fields(visit);
  visit.field("bilevel", bilevel, "estimate between turns first, then inside each (RAGEN); use with reward.per_turn");
  visit.field("turn_gamma", turn_gamma, "discount per turn of the bilevel form", between(0, 1));
}

UnreadKeys CriticEstimatorOptions::unread_keys() const {
  UnreadKeys unread;
  unread.add(gae.unread_keys());
  if (bilevel)
    unread.add({"compat.through_observations"}, "bilevel estimates inside turns");
  else
    unread.add({"turn_gamma", "compat.turns_end_at_rewards"}, "bilevel is false");
  return unread;
}

CreditRule critic_estimator(const CriticEstimatorOptions& options) {
  GaeOptions between_tokens = options.gae;
  between_tokens.skip_unsampled = !options.quirks.through_observations;
  if (!options.bilevel) return gae(between_tokens);
  return bilevel_gae({.gamma = options.gae.gamma,
                      .lambda = options.gae.lambda,
                      .turn_gamma = options.turn_gamma,
                      .whiten = options.gae.whiten,
                      .whitening = options.gae.whitening,
                      .turns_end_at_rewards = options.quirks.turns_end_at_rewards});
}

}  // namespace carnot
