#include "carnot/core/credit/critic_advantage.h"

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

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

}  // namespace

CreditRule critic_rule(std::string name, CriticAdvantages advantages, std::optional<Whitening> whitening) {
  return {.name = std::move(name),
          .apply = [advantages = std::move(advantages), whitening](
                       std::span<const Trajectory> trajectories,
                       CreditTable& table) { add_advantages(trajectories, table, advantages, whitening); },
          .columns = {Column::Value},
          .sets_value_target = true};
}

}  // namespace carnot
