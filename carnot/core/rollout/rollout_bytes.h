// rollout/rollout_bytes.h -- a rollout as bytes, for another process of the same program (data/group_bytes.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"
#include "carnot/core/rollout/rollout.h"

namespace carnot {

std::string bytes_of_rollout(const Rollout& rollout);

/// Refuses bytes that do not encode a rollout.
Result<Rollout> rollout_of_bytes(std::string_view bytes);

/// How the times of two parts of a rollout are combined.
enum class PartTimes { Longest, Added };

/// Counts are added up.
void add_metrics(RolloutMetrics& sum, const RolloutMetrics& more, PartTimes times);

/// What the tasks asked for, as far as a rollout shows it: to check results of other machines.
struct ExpectedRollout {
  std::span<const RolloutTask> tasks{};
  RolloutKey key{};
  std::optional<int> newest_version{};  ///< of the weights; empty: the key's, which is the oldest
  int vocabulary = 0;                   ///< token ids are below it
};

/// Whether `rollout` is one of these tasks: its groups, their keys, tokens of the vocabulary, the rollout's columns.
Status check_rollout(const Rollout& rollout, const ExpectedRollout& expected);

}  // namespace carnot
