// train/control_reward.h -- rewards that know nothing of the task: controls for what training learned from the task's
// own.
//
// A gain that random rewards bring, too, is not learned from the reward (Shao et al., "Spurious Rewards",
// arXiv:2506.10947).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/core/data/tree.h"

namespace carnot {

/// The words of train.reward.
inline const std::vector<std::string> kRewardWords{"environment", "random", "format"};

/// Replaces the rewards of all trajectories by one at their end: `random`: 1 or 0 with equal chance, keyed by (seed,
/// the group's step and task, sibling); `format`: 1 where the environment ended the episode after a valid action, right
/// or wrong, else 0; `environment`: changes nothing. Whether a trajectory succeeded stays.
void replace_rewards(const std::string& word, std::uint64_t seed, std::vector<Group>& groups);

}  // namespace carnot
