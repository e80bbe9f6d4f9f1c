// rollout/measured_advantage.h -- what each turn of finished trajectories changed, measured by continuations
// (rollout/continuations.h): Column::AdvantageOracle.
#pragma once

#include <functional>
#include <span>

#include "carnot/core/data/tree.h"
#include "carnot/core/rollout/continuations.h"

namespace carnot {

/// Where the continuations of groups come from.
struct ContinuationSource {
  Engine& engine;
  const ChatFamily& chat;
  const RolloutOptions& options;  ///< with group_size continuations of each state; no answers scored
  std::uint64_t seed = 0;         ///< groups draw by it, their step and their uid, whatever other groups there are
  std::function<RolloutTask(const Group&)> task{};  ///< a group's task, to be played again
};

/// Fills AdvantageOracle of all sampled tokens: the policy's mean score from after the turn, minus that from before it.
/// After a leaf's last turn the score is the leaf's own, penalties included; where leaves share their last turn, their
/// mean. Turns that trajectories share, and the prompts of a group, are measured once. NaN for turns of leaves that do
/// not count, where all continuations were lost to the infrastructure, and for what is left once `events.go_on` stops
/// it. Returns a sentence for each continuation that was lost.
std::vector<std::string> measure_advantages(const ContinuationSource& source, std::span<Group> groups,
                                            const RolloutEvents& events = {});

}  // namespace carnot
