#include "carnot/data/credit_table.h"

namespace carnot {

CreditTable fresh_credit(std::span<const Trajectory> trajectories) {
  CreditTable table;
  table.reserve(trajectories.size());
  for (const Trajectory& trajectory : trajectories) {
    const auto size = static_cast<std::size_t>(trajectory.num_tokens());
    table.push_back({.advantage = std::vector<double>(size, 0.0),
                     .weight = std::vector<double>(size, 1.0),
                     .clip_scale = std::vector<double>(size, 1.0),
                     .value_target = std::vector<double>(size, std::numeric_limits<double>::quiet_NaN())});
  }
  return table;
}

}  // namespace carnot
