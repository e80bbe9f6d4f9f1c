#include "carnot/core/train/minibatches.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"

namespace carnot {

std::vector<std::vector<int>> split_minibatches(std::span<const Trajectory> trajectories,
                                                const MinibatchOptions& options) {
  CARNOT_CHECK_GE(options.count, 1);
  std::vector<std::vector<int>> units;
  int last_group = -1;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    const bool joins = options.unit == MinibatchUnit::Group && trajectories[i].group_index == last_group;
    if (!joins) units.emplace_back();
    units.back().push_back(static_cast<int>(i));
    last_group = trajectories[i].group_index;
  }
  if (options.shuffle) RandomStream(options.seed).shuffle(units);

  const std::size_t parts = std::min(static_cast<std::size_t>(options.count), units.size());
  std::vector<std::vector<int>> minibatches(parts);
  for (std::size_t part = 0; part < parts; ++part) {
    for (std::size_t u = units.size() * part / parts; u < units.size() * (part + 1) / parts; ++u)
      minibatches[part].insert(minibatches[part].end(), units[u].begin(), units[u].end());
    std::sort(minibatches[part].begin(), minibatches[part].end());
  }
  return minibatches;
}

}  // namespace carnot
