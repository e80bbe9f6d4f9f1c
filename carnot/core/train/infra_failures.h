// train/infra_failures.h -- how many trajectories were lost to infrastructure failures or to prompts that are too
// long, and when that is too many.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tree.h"

namespace carnot {

/// Trajectories of a step or an evaluation.
struct FailureCount {
  std::int64_t failed = 0;  ///< InfraFailed
  std::int64_t all = 0;
};
FailureCount count_failures(const std::vector<Group>& groups);

/// Fails if more than the share `limit` failed; `failures` are Rollout's sentences; the first is quoted.
Status check_failures(const FailureCount& count, double limit, const std::vector<std::string>& failures);

/// Warns of trajectories whose prompts left no room for a response; fails if that holds for all.
Status check_room(const std::string& where, const std::vector<Group>& groups, int max_context_tokens);

/// Warns of the first few, and says how many more there are.
void warn_of_failures(const std::string& where, const std::vector<std::string>& failures);

}  // namespace carnot
