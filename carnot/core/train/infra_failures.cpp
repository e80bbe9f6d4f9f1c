#include "carnot/core/train/infra_failures.h"

#include <algorithm>

#include "carnot/core/base/log.h"
#include "carnot/core/config/numbers.h"
#include "carnot/core/data/trajectory.h"

namespace carnot {

FailureCount count_failures(const std::vector<Group>& groups) {
  FailureCount count;
  for (const Group& group : groups)
    for (const Tree& tree : group.trees)
      for (const Leaf& leaf : tree.leaves) {
        ++count.all;
        count.failed += leaf.valid() ? 0 : 1;
      }
  return count;
}

Status check_failures(const FailureCount& count, double limit, const std::vector<std::string>& failures) {
  if (static_cast<double>(count.failed) <= limit * static_cast<double>(count.all)) return Done{};
  return Error{std::to_string(count.failed) + " of " + std::to_string(count.all) +
               " trajectories were lost to infrastructure failures, more than the share of " + write_number(limit) +
               " that train.max_infra_failures allows" + (failures.empty() ? "" : ". The first: " + failures.front())};
}

Status check_room(const std::string& where, const std::vector<Group>& groups, int max_context_tokens) {
  std::int64_t valid = 0, empty = 0;
  for (const Trajectory& view : trajectories(groups)) {
    valid += view.leaf().valid() ? 1 : 0;
    empty += view.leaf().outcome == Outcome::OutOfTokens && view.num_sampled() == 0 ? 1 : 0;
  }
  if (empty == 0) return Done{};
  const std::string problem = std::to_string(empty) + " of " + std::to_string(valid) +
                              " trajectories have no response: their prompts are not shorter than "
                              "rollout.max_context_tokens, " +
                              std::to_string(max_context_tokens);
  if (empty == valid) return Error{problem};
  log_warning(where + ": " + problem);
  return Done{};
}

void warn_of_failures(const std::string& where, const std::vector<std::string>& failures) {
  constexpr std::size_t kShown = 10;
  const std::size_t shown = std::min(kShown, failures.size());
  for (std::size_t i = 0; i < shown; ++i) log_warning(where + ": " + failures[i]);
  if (shown < failures.size())
    log_warning(where + ": and " + std::to_string(failures.size() - shown) + " more failures");
}

}  // namespace carnot
