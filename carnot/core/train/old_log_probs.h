// train/old_log_probs.h -- where the old policy's log-probabilities come from: the rollout, or a pass of the policy.
//
// Carnot's kernels give a token the same bits in both (docs/numerics.md). So `rollout.old_log_probs: auto` takes the
// rollout's, except for groups that other weights or other kernels sampled.
#pragma once

#include <cstdint>
#include <span>

#include "carnot/core/data/tree.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "carnot/core/train/options.h"

namespace carnot {

struct OldLogProbs {
  const RolloutSettings& settings;
  const Model& policy;
  std::int64_t version = 0;  ///< optimizer steps that have updated the policy

  /// Whether the group's log-probabilities are the rollout's.
  bool are_reused(const Group& group) const;

  /// Share of the groups for which they are.
  double reused_share(std::span<const Group> groups) const;

  /// Fills LogProbOld and EntropyOld; leaves that do not count have NaN there.
  void measure(std::span<Group> groups, const LogProbPassOptions& options) const;
};

}  // namespace carnot
