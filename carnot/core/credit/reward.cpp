#include "carnot/core/credit/reward.h"

#include <algorithm>

#include "carnot/core/base/statistics.h"
#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"

namespace carnot {
namespace {

void place_turn_rewards(const Trajectory& trajectory, std::vector<double>& reward) {
  if (reward.empty()) return;
  reward[trajectory.reward_token()] -= trajectory.penalised_score();
  for (int k = 0; k < trajectory.num_turns(); ++k)
    reward[trajectory.reward_token(k + 1)] += trajectory.turn(k).reward + trajectory.turn(k).penalty;
}

/// k1 of the old policy and the reference, by token.
std::vector<double> kl_of(const Trajectory& trajectory) {
  std::vector<double> kl = trajectory.column(Column::LogProbOld);
  const std::vector<double> reference = trajectory.column(Column::LogProbReference);
  for (std::size_t t = 0; t < kl.size(); ++t) kl[t] -= reference[t];
  return kl;
}

void subtract_kl(const Trajectory& trajectory, std::vector<double>& reward, double coefficient) {
  const std::vector<double> kl = kl_of(trajectory);
  const std::vector<bool> sampled = trajectory.sampled();
  for (std::size_t t = 0; t < reward.size(); ++t)
    if (sampled[t]) reward[t] -= coefficient * kl[t];
}

std::vector<int> joined(const std::vector<std::vector<int>>& groups) {
  std::vector<int> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

std::vector<double> scaled(std::span<const double> scores, RewardScaling scaling) {
  constexpr double kNoSpread = 1e-6;
  if (scaling == RewardScaling::Identity) return {scores.begin(), scores.end()};
  std::vector<double> out = normalised(scores, {.divide_by_std = scaling != RewardScaling::Mean});
  if (scaling != RewardScaling::Mean && std_sample(scores) <= kNoSpread) out.assign(scores.size(), 0.0);
  if (scaling == RewardScaling::AsymmetricClip)
    for (double& x : out) x = std::clamp(x, -1.0, 3.0);
  return out;
}

}  // namespace

void RewardOptions::fields(FieldVisitor& visit) {
  visit.field("per_turn", per_turn, "place each turn's reward on that turn instead of the total at the end");
  visit.field("invalid_action_penalty", invalid_action_penalty, "subtracted for every turn with an invalid action",
              at_least(0));
  visit.field("overlong_limit", overlong_limit, "tokens of a response at most; 0: no overlong penalty", at_least(0));
  visit.field("overlong_buffer", overlong_buffer, "tokens before that limit where the penalty grows", at_least(1));
  visit.field("overlong_factor", overlong_factor, "the penalty at the limit", at_least(0));
  enum_field(visit, "scaling", scaling, {"identity", "mean", "mean_std", "asymmetric_clip"},
             "what trajectories' totals are replaced by");
  enum_field(visit, "scaling_over", scaling_over, {"group", "batch"}, "what they are scaled against");
}

UnreadKeys RewardOptions::unread_keys(RewardsRead read) const {
  UnreadKeys unread;
  if (read == RewardsRead::Totals) unread.add({"per_turn"}, "this method reads the total reward only");
  if (overlong_limit == 0) unread.add({"overlong_buffer", "overlong_factor"}, "overlong_limit is 0");
  if (scaling == RewardScaling::Identity) unread.add({"scaling_over"}, "scaling is identity");
  return unread;
}

std::vector<CreditRule> reward_rules(const RewardOptions& options) {
  std::vector<CreditRule> rules;
  if (options.per_turn) rules.push_back(turn_rewards());
  if (options.invalid_action_penalty > 0) rules.push_back(invalid_action_penalty(options.invalid_action_penalty));
  if (options.overlong_limit > 0)
    rules.push_back(overlong_penalty(options.overlong_limit, options.overlong_buffer, options.overlong_factor));
  if (options.scaling != RewardScaling::Identity)
    rules.push_back(normalise_rewards(options.scaling_over, options.scaling));
  return rules;
}

CreditRule turn_rewards() {
  const auto apply = [](std::span<const Trajectory> trajectories, CreditTable& table) {
    for (std::size_t i = 0; i < trajectories.size(); ++i)
      if (trajectories[i].leaf().is_included()) place_turn_rewards(trajectories[i], table[i].reward);
  };
  return {.name = "turn_rewards", .apply = apply, .kind = RuleKind::Shaping};
}

CreditRule kl_in_reward(double coefficient) {
  const auto apply = [coefficient](std::span<const Trajectory> trajectories, CreditTable& table) {
    if (coefficient == 0) return;
    for (std::size_t i = 0; i < trajectories.size(); ++i)
      if (trajectories[i].leaf().is_included()) subtract_kl(trajectories[i], table[i].reward, coefficient);
  };
  const auto read = [](std::span<const Trajectory> trajectories, const CreditTable&, RuleReadings& readings) {
    for (std::size_t i = 0; i < trajectories.size(); ++i)
      if (trajectories[i].leaf().is_included()) readings.set_list("KL to the reference", i, kl_of(trajectories[i]));
  };
  return {.name = "kl_in_reward",
          .apply = apply,
          .read = read,
          .columns = {Column::LogProbOld, Column::LogProbReference},
          .kind = RuleKind::Shaping};
}

CreditRule invalid_action_penalty(double amount) {
  const auto apply = [amount](std::span<const Trajectory> trajectories, CreditTable& table) {
    for (std::size_t i = 0; i < trajectories.size(); ++i) {
      if (!trajectories[i].leaf().is_included()) continue;
      for (int k = 0; k < trajectories[i].num_turns(); ++k)
        if (!trajectories[i].turn(k).valid_action) table[i].reward[trajectories[i].reward_token(k + 1)] -= amount;
    }
  };
  return {.name = "invalid_action_penalty", .apply = apply, .kind = RuleKind::Shaping};
}

double overlong_loss(int tokens, int limit, int buffer, double factor) {
  const int exceeding = tokens - (limit - buffer);
  return exceeding > 0 ? -static_cast<double>(exceeding) / buffer * factor : 0;
}

int response_tokens(const Trajectory& trajectory) {
  const std::vector<bool> inside = in_response(trajectory);
  return static_cast<int>(std::count(inside.begin(), inside.end(), true));
}

CreditRule overlong_penalty(int limit, int buffer, double factor) {
  const auto apply = [=](std::span<const Trajectory> trajectories, CreditTable& table) {
    for (std::size_t i = 0; i < trajectories.size(); ++i)
      if (trajectories[i].leaf().is_included() && trajectories[i].num_tokens() > 0)
        table[i].reward[trajectories[i].reward_token()] +=
            overlong_loss(response_tokens(trajectories[i]), limit, buffer, factor);
  };
  const auto read = [](std::span<const Trajectory> trajectories, const CreditTable&, RuleReadings& readings) {
    for (std::size_t i = 0; i < trajectories.size(); ++i)
      if (trajectories[i].leaf().is_included())
        readings.set_all("response tokens", i, response_tokens(trajectories[i]));
  };
  return {.name = "overlong_penalty", .apply = apply, .read = read, .kind = RuleKind::Shaping};
}

CreditRule normalise_rewards(RewardGrouping grouping, RewardScaling scaling) {
  const auto apply = [=](std::span<const Trajectory> trajectories, CreditTable& table) {
    auto sets = members_by_group(trajectories);
    if (grouping == RewardGrouping::Batch) sets = {joined(sets)};
    if (std::all_of(sets.begin(), sets.end(), [](const auto& members) { return members.size() < 2; })) return;
    for (const auto& members : sets) {
      const std::vector<double> totals = rewards_of(table, members);
      const std::vector<double> values = scaled(totals, scaling);
      for (std::size_t i = 0; i < members.size(); ++i) {
        const auto member = static_cast<std::size_t>(members[i]);
        table[member].reward[trajectories[member].reward_token()] += values[i] - totals[i];
      }
    }
  };
  return {.name = "normalise_rewards", .apply = apply, .kind = RuleKind::Shaping};
}

}  // namespace carnot
