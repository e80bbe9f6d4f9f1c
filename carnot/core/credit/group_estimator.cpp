#include "carnot/core/credit/group_estimator.h"

#include <algorithm>

#include "carnot/core/base/statistics.h"
#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/rule.h"

namespace carnot {
namespace {

double weighted_mean(std::span<const double> values, std::span<const double> weights) {
  double sum = 0;
  double total = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += weights[i] * values[i];
    total += weights[i];
  }
  return total > 0 ? sum / total : mean(values);
}

void subtract_weighted_mean(std::span<const Trajectory> trajectories, CreditTable& table, Singleton singleton) {
  for (const auto& members : members_by_group(trajectories)) {
    const std::vector<double> rewards = rewards_of(table, members);
    std::vector<double> lengths;
    for (int i : members) lengths.push_back(trajectories[i].num_sampled());
    double baseline = all_equal(rewards) ? rewards.front() : weighted_mean(rewards, lengths);
    if (rewards.size() == 1 && singleton == Singleton::Raw) baseline = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto member = static_cast<std::size_t>(members[i]);
      add_to_all_turns(table[member].advantage, trajectories[member], rewards[i] - baseline);
    }
  }
}

double scale_of_nonzero(std::span<const Trajectory> trajectories, const CreditTable& table) {
  double all = 0;
  double nonzero = 0;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    all += 1;
    nonzero += table[i].total_reward() != 0 ? 1 : 0;
  }
  return all / std::max(nonzero, 1.0);
}

/// The best gets 1 / divisor of its lead; the others get 0.
void reward_the_best(std::span<const Trajectory> trajectories, CreditTable& table, const BestOfGroupOptions& options) {
  for (const auto& members : members_by_group(trajectories)) {
    if (members.size() < 2) continue;
    const std::vector<double> rewards = rewards_of(table, members);
    std::vector<double> sorted = rewards;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    const double lead = sorted[0] - sorted[1];
    if (lead == 0) continue;
    const auto best = std::max_element(rewards.begin(), rewards.end()) - rewards.begin();
    const auto member = static_cast<std::size_t>(members[static_cast<std::size_t>(best)]);
    const double divisor = options.divide_by_std ? std_sample(rewards) + options.epsilon : 1;
    add_to_all_turns(table[member].advantage, trajectories[member], lead / divisor);
  }
}

}  // namespace

void GroupEstimatorOptions::fields(FieldVisitor& visit) {
  enum_field(visit, "estimator", estimator, {"group_relative", "length_weighted", "nonzero_scaled", "best_of_group"},
             "how a trajectory is compared with its group: GRPO, OPO, GPG, or GRPO for pass@k");
  group.fields(visit);
}

UnreadKeys GroupEstimatorOptions::unread_keys() const {
  constexpr std::string_view kWhy = "grpo.estimator has no such choice";
  UnreadKeys unread;
  if (estimator != GroupEstimator::GroupRelative)
    unread.add({"deviation", "variance_epsilon", "variance_floor", "statistics"}, kWhy);
  if (estimator == GroupEstimator::BestOfGroup) unread.add({"singleton"}, kWhy);
  if (estimator == GroupEstimator::LengthWeighted || estimator == GroupEstimator::NonzeroScaled)
    unread.add({"divide_by_std", "epsilon"}, kWhy);
  unread.add(group.unread_keys());
  return unread;
}

CreditRule group_estimator(const GroupEstimatorOptions& options) {
  const Normalisation& normalisation = options.group.normalisation;
  switch (options.estimator) {
    case GroupEstimator::LengthWeighted: return length_weighted_baseline(normalisation.singleton);
    case GroupEstimator::NonzeroScaled: return nonzero_scaled(normalisation.singleton);
    case GroupEstimator::BestOfGroup:
      return best_of_group({.divide_by_std = normalisation.divide_by_std, .epsilon = normalisation.epsilon});
    case GroupEstimator::GroupRelative: break;
  }
  return group_relative(options.group);
}

CreditRule length_weighted_baseline(Singleton singleton) {
  const auto apply = [singleton](std::span<const Trajectory> trajectories, CreditTable& table) {
    subtract_weighted_mean(trajectories, table, singleton);
  };
  return {.name = "length_weighted_baseline", .apply = apply, .needs_siblings = singleton == Singleton::Zero};
}

CreditRule nonzero_scaled(Singleton singleton) {
  const auto apply = [singleton](std::span<const Trajectory> trajectories, CreditTable& table) {
    const double scale = scale_of_nonzero(trajectories, table);
    const CreditRule rule = against_group("", Statistics::Trajectories, [&](std::span<const double> rewards) {
      Standard standard = standard_of(rewards, {.divide_by_std = false, .singleton = singleton});
      standard.divisor = 1 / scale;
      return standard;
    });
    rule.apply(trajectories, table);
  };
  return {.name = "nonzero_scaled", .apply = apply, .needs_siblings = singleton == Singleton::Zero};
}

CreditRule best_of_group(const BestOfGroupOptions& options) {
  return {.name = "best_of_group",
          .apply = [options](auto trajectories, CreditTable& table) { reward_the_best(trajectories, table, options); },
          .needs_siblings = true};
}

}  // namespace carnot
