#include "carnot/core/credit/shared_prefix.h"

#include <map>

#include "carnot/core/credit/members.h"

namespace carnot {
namespace {

/// One occurrence of a shared turn in a trajectory.
struct Passage {
  std::size_t trajectory = 0;
  int k = 0;
};

void share(std::span<const Passage> passages, std::span<const Trajectory> trajectories, CreditTable& table) {
  const double n = static_cast<double>(passages.size());
  const auto part = [&](const Passage& passage) {
    return sampled_part(table[passage.trajectory].advantage, trajectories[passage.trajectory], passage.k);
  };
  for (std::size_t t = 0; t < part(passages.front()).size(); ++t) {
    double sum = 0;
    for (const Passage& passage : passages) sum += part(passage)[t];
    for (const Passage& passage : passages) part(passage)[t] = sum / n;
  }
}

}  // namespace

CreditRule shared_prefix() {
  const auto apply = [](std::span<const Trajectory> trajectories, CreditTable& table) {
    for (const auto& members : members_by_tree(trajectories)) {
      std::map<int, std::vector<Passage>> passages;
      for (int i : members) {
        const Trajectory& one = trajectories[i];
        for (int k = 0; k < one.num_turns(); ++k)
          passages[one.turns[k]].push_back({.trajectory = static_cast<std::size_t>(i), .k = k});
      }
      for (const auto& [turn, all] : passages)
        if (all.size() > 1) share(all, trajectories, table);
    }
  };
  return {.name = "shared_prefix", .apply = apply, .kind = RuleKind::Modulator};
}

}  // namespace carnot
