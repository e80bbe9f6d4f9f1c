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

/// Visits each trajectory that counts, with its reward and what is subtracted from it.
void visit_baselines(std::span<const Trajectory> trajectories, const CreditTable& table, Singleton singleton,
                     const std::function<void(std::size_t member, double reward, double baseline)>& visit) {
  for (const auto& members : members_by_group(trajectories)) {
    const std::vector<double> rewards = rewards_of(table, members);
    std::vector<double> lengths;
    for (int i : members) lengths.push_back(trajectories[i].num_sampled());
    double baseline = all_equal(rewards) ? rewards.front() : weighted_mean(rewards, lengths);
    if (rewards.size() == 1 && singleton == Singleton::Raw) baseline = 0;
    for (std::size_t i = 0; i < members.size(); ++i) visit(static_cast<std::size_t>(members[i]), rewards[i], baseline);
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

/// nonzero_scaled() for these trajectories.
CreditRule scaled_comparison(std::span<const Trajectory> trajectories, const CreditTable& table, Singleton singleton) {
  const double scale = scale_of_nonzero(trajectories, table);
  return against_group("", Statistics::Trajectories, [scale, singleton](std::span<const double> rewards) {
    Standard standard = standard_of(rewards, {.divide_by_std = false, .singleton = singleton});
    standard.divisor = 1 / scale;
    return standard;
  });
}

/// Visits the best of each group with its lead and what that is divided by.
void visit_best(std::span<const Trajectory> trajectories, const CreditTable& table, const BestOfGroupOptions& options,
                const std::function<void(std::size_t member, double lead, double divisor)>& visit) {
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
    visit(member, lead, divisor);
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
    visit_baselines(trajectories, table, singleton, [&](std::size_t member, double reward, double baseline) {
      add_to_all_turns(table[member].advantage, trajectories[member], reward - baseline);
    });
  };
  const auto read = [singleton](std::span<const Trajectory> trajectories, const CreditTable& table,
                                RuleReadings& readings) {
    visit_baselines(trajectories, table, singleton, [&](std::size_t member, double reward, double baseline) {
      readings.set_all("reward", member, reward);
      readings.set_all("group mean by length", member, baseline);
    });
  };
  return {
      .name = "length_weighted_baseline", .apply = apply, .read = read, .needs_siblings = singleton == Singleton::Zero};
}

CreditRule nonzero_scaled(Singleton singleton) {
  const auto apply = [singleton](std::span<const Trajectory> trajectories, CreditTable& table) {
    scaled_comparison(trajectories, table, singleton).apply(trajectories, table);
  };
  const auto read = [singleton](std::span<const Trajectory> trajectories, const CreditTable& table,
                                RuleReadings& readings) {
    scaled_comparison(trajectories, table, singleton).read(trajectories, table, readings);
  };
  return {.name = "nonzero_scaled", .apply = apply, .read = read, .needs_siblings = singleton == Singleton::Zero};
}

CreditRule best_of_group(const BestOfGroupOptions& options) {
  const auto apply = [options](std::span<const Trajectory> trajectories, CreditTable& table) {
    visit_best(trajectories, table, options, [&](std::size_t member, double lead, double divisor) {
      add_to_all_turns(table[member].advantage, trajectories[member], lead / divisor);
    });
  };
  const auto read = [options](std::span<const Trajectory> trajectories, const CreditTable& table,
                              RuleReadings& readings) {
    visit_best(trajectories, table, options, [&](std::size_t member, double lead, double divisor) {
      readings.set_all("lead over the second", member, lead);
      readings.set_all("divisor", member, divisor);
    });
  };
  return {.name = "best_of_group", .apply = apply, .read = read, .needs_siblings = true};
}

}  // namespace carnot
