#include "carnot/core/train/old_log_probs.h"

#include <algorithm>

#include "carnot/core/nn/linear.h"
#include "carnot/core/rollout/measure.h"

namespace carnot {
namespace {

bool was_sampled_by(std::int64_t version, const Group& group) {
  return std::ranges::all_of(group.trees, [&](const Tree& tree) {
    return std::ranges::all_of(
        tree.turns, [&](const Turn& turn) { return turn.num_sampled() == 0 || turn.policy_version == version; });
  });
}

}  // namespace

bool OldLogProbs::are_reused(const Group& group) const {
  if (settings.old_log_probs != "auto") return settings.old_log_probs == "rollout";
  // Synchronously, what other kernels sampled has been measured again by the time it comes here.
  const bool same_kernels = !settings.workers.takes_other_kernels() || !settings.workers.is_asynchronous();
  const bool invariant = policy.kernels() == KernelChoice::Own && own_kernels_take(policy.head());
  return same_kernels && invariant && was_sampled_by(version, group);
}

double OldLogProbs::reused_share(std::span<const Group> groups) const {
  const auto reused = std::ranges::count_if(groups, [&](const Group& group) { return are_reused(group); });
  return static_cast<double>(reused) / static_cast<double>(std::max<std::size_t>(1, groups.size()));
}

void OldLogProbs::measure(std::span<Group> groups, const LogProbPassOptions& options) const {
  while (!groups.empty()) {
    const bool reused = are_reused(groups[0]);
    const auto other = std::ranges::find_if(groups, [&](const Group& group) { return are_reused(group) != reused; });
    const auto alike = groups.first(static_cast<std::size_t>(other - groups.begin()));
    if (reused)
      reuse_rollout_statistics(alike);
    else
      measure_old_policy(policy, alike, options);
    groups = groups.subspan(alike.size());
  }
}

}  // namespace carnot
