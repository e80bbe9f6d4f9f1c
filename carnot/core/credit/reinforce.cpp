#include "carnot/core/credit/reinforce.h"

#include "carnot/core/credit/rule.h"

namespace carnot {
namespace {

using PerToken = std::vector<std::vector<double>>;

std::vector<double> returns(const Trajectory& trajectory, std::span<const double> reward,
                            const ReinforceOptions& options) {
  const std::vector<bool> sampled = trajectory.sampled();
  std::vector<double> out(reward.size(), 0.0);
  double running = 0;
  for (std::size_t t = reward.size(); t-- > 0;) {
    if (sampled[t])
      out[t] = running = reward[t] + options.gamma * running;
    else if (options.restart_at_observations)
      running = 0;
  }
  return out;
}

PerToken returns_to_go(std::span<const Trajectory> trajectories, const CreditTable& table,
                       const ReinforceOptions& options) {
  PerToken out(trajectories.size());
  for (std::size_t i = 0; i < trajectories.size(); ++i)
    if (trajectories[i].leaf().is_included()) out[i] = returns(trajectories[i], table[i].reward, options);
  return out;
}

PerToken above_group_mean(std::span<const Trajectory> trajectories, const CreditTable& table, Singleton singleton) {
  PerToken out(trajectories.size());
  for (const auto& members : members_by_group(trajectories)) {
    const std::vector<double> advantage =
        normalised(rewards_of(table, members), {.divide_by_std = false, .singleton = singleton});
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto member = static_cast<std::size_t>(members[i]);
      out[member].assign(table[member].advantage.size(), advantage[i]);
    }
  }
  return out;
}

}  // namespace

void ReinforceOptions::fields(FieldVisitor& visit) {
  visit.field("gamma", gamma, "discount per sampled token", between(0, 1));
  visit.field("group_baseline", group_baseline, "subtract the group's mean reward instead of taking returns");
  singleton_field(visit, singleton);
  section(visit, "whitening", whitening, "how advantages are normalised over the sampled tokens of the step");
}

void ReinforceOptions::quirk_fields(FieldVisitor& visit) {
  visit.field("restart_at_observations", restart_at_observations,
              "returns restart after observations, so that only the last turn sees the outcome");
}

UnreadKeys ReinforceOptions::unread_keys() const {
  UnreadKeys unread;
  if (group_baseline) unread.add({"gamma"}, "group_baseline compares whole trajectories");
  if (!group_baseline) unread.add({"singleton"}, "group_baseline is false");
  if (group_baseline) unread.add({"compat.restart_at_observations"}, "group_baseline takes no returns");
  return unread;
}

CreditRule reinforce(const ReinforceOptions& options) {
  const auto returns_of = [options](std::span<const Trajectory> trajectories, const CreditTable& table) {
    return options.group_baseline ? above_group_mean(trajectories, table, options.singleton)
                                  : returns_to_go(trajectories, table, options);
  };
  const auto read = [options, returns_of](std::span<const Trajectory> trajectories, const CreditTable& table,
                                          RuleReadings& readings) {
    const PerToken values = returns_of(trajectories, table);
    for (std::size_t i = 0; i < trajectories.size(); ++i)
      if (trajectories[i].leaf().is_included())
        readings.set_list(options.group_baseline ? "reward above the group mean" : "return", i, values[i]);
  };
  const auto apply = [options, returns_of](std::span<const Trajectory> trajectories, CreditTable& table) {
    PerToken values = returns_of(trajectories, table);
    whiten_sampled(trajectories, values, options.whitening);
    for (std::size_t i = 0; i < trajectories.size(); ++i) {
      if (!trajectories[i].leaf().is_included()) continue;
      const std::vector<bool> sampled = trajectories[i].sampled();
      for (std::size_t t = 0; t < sampled.size(); ++t)
        if (sampled[t]) table[i].advantage[t] += values[i][t];
    }
  };
  return {.name = "reinforce", .apply = apply, .read = read};
}

}  // namespace carnot
