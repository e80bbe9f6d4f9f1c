#include "carnot/core/credit/measured_advantage.h"

#include <cmath>

namespace carnot {

CreditRule measured_advantage() {
  const auto apply = [](std::span<const Trajectory> trajectories, CreditTable& table) {
    for (std::size_t i = 0; i < trajectories.size(); ++i) {
      if (!trajectories[i].leaf().is_included() || !trajectories[i].tree->columns.has(Column::AdvantageOracle))
        continue;
      const std::vector<double> measured = trajectories[i].column(Column::AdvantageOracle);
      const std::vector<bool> sampled = trajectories[i].sampled();
      for (std::size_t t = 0; t < sampled.size(); ++t)
        if (sampled[t] && !std::isnan(measured[t])) table[i].advantage[t] += measured[t];
    }
  };
  return {.name = "measured_advantage", .apply = apply, .columns = {Column::AdvantageOracle}, .any_token = true};
}

}  // namespace carnot
