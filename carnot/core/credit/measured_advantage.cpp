#include "carnot/core/credit/measured_advantage.h"

#include <cmath>

namespace carnot {
namespace {

/// The column of a trajectory that counts; empty if there is none.
std::vector<double> measured_of(const Trajectory& trajectory) {
  const bool is_there = trajectory.leaf().is_included() && trajectory.tree->columns.has(Column::AdvantageOracle);
  return is_there ? trajectory.column(Column::AdvantageOracle) : std::vector<double>();
}

}  // namespace

CreditRule measured_advantage() {
  const auto apply = [](std::span<const Trajectory> trajectories, CreditTable& table) {
    for (std::size_t i = 0; i < trajectories.size(); ++i) {
      const std::vector<double> measured = measured_of(trajectories[i]);
      const std::vector<bool> sampled = trajectories[i].sampled();
      for (std::size_t t = 0; t < measured.size(); ++t)
        if (sampled[t] && !std::isnan(measured[t])) table[i].advantage[t] += measured[t];
    }
  };
  const auto read = [](std::span<const Trajectory> trajectories, const CreditTable&, RuleReadings& readings) {
    for (std::size_t i = 0; i < trajectories.size(); ++i)
      if (const auto measured = measured_of(trajectories[i]); !measured.empty())
        readings.set_list("V after the turn minus V before it", i, measured);
  };
  return {.name = "measured_advantage",
          .apply = apply,
          .read = read,
          .columns = {Column::AdvantageOracle},
          .any_token = true};
}

}  // namespace carnot
