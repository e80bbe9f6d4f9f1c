// serving/imported/imported_groups.h -- rollouts of other systems as groups of token sequences.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/text/chat.h"
#include "carnot/serving/imported/rollout_format.h"

namespace carnot {

struct RolloutImportOptions {
  std::string think_tag = "think";  ///< what a response has between these tags is thinking, the rest is action
  double success_score = 1;         ///< from which a trajectory counts as success
};

struct ImportedGroups {
  std::vector<Group> groups{};   ///< in the order of their first trajectories; steps from 1
  std::int64_t log_probs = 0;    ///< trajectories whose LogProbRollout is what their record has
  std::int64_t failed = 0;       ///< records of an infrastructure failure before any response: left out
  std::int64_t not_aligned = 0;  ///< whose record has another number of log-probabilities than tokens were sampled
};

/// Writes conversations in the chat format as a rollout has them, from turn to turn; texts become tokens as they are,
/// so that control tokens that a system left out stay out. Every trajectory is a tree of its own. Steps are raised by
/// one if the first is 0. The error has all records that cannot be written, with their lines.
Result<ImportedGroups> import_groups(const ImportedRollouts& all, const ChatFamily& chat,
                                     const RolloutImportOptions& options);

}  // namespace carnot
