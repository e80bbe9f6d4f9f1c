// train/step_gather.h -- what the ranks exchange in a step, so that each of them knows the whole step.
//
// What comes out is the same on every rank and, wherever a result and not a time is meant, the same for any number of
// ranks: groups in the order of the tasks, sums in the order of the micro-batches.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/collectives/collectives.h"
#include "carnot/core/loss/loss.h"
#include "carnot/core/rollout/rollout.h"

namespace carnot {

/// roll_out() with the tasks shared out among the ranks, which together get what one rank would: only times and counts
/// of the engine's work depend on their number. Stopped on all if `events` end it on any.
Rollout roll_out_together(Collectives& collectives, Engine& engine, const ChatFamily& chat, const BranchPolicy& policy,
                          std::span<const RolloutTask> tasks, const RolloutOptions& options, const RolloutKey& key,
                          const RolloutEvents& events, const std::string& what);

/// What rank 0 gets from elsewhere, on all ranks, which wait for it however long it takes. Stopped on all if `events`
/// end it on any.
Rollout roll_out_on_first_rank(Collectives& collectives,
                               const std::function<Rollout(const RolloutEvents& events)>& rollouts,
                               const RolloutEvents& events, const std::string& what);

/// The ranks' rollouts as one: groups and failures one after the other, counts added up, and of each time the longest.
/// Stopped if any is.
Rollout gather_rollout(Collectives& collectives, Rollout mine, const std::string& what);

/// Group i becomes what rank owners[i] has of it. REQUIRES: an owner for each group, the same on all ranks.
void gather_groups(Collectives& collectives, std::span<const int> owners, std::vector<Group>& groups,
                   const std::string& what);

/// What the training pass of one micro-batch measured.
struct BatchReport {
  std::vector<double> logprob{};  ///< under the weights that the pass ran with, by T
  std::vector<MetricSum> metrics{};
  /// |log-probability here - that of the rollout|, where the rollout's are known and the weights are still the same.
  double compared_tokens = 0, difference = 0, largest_difference = 0;
};

/// Report i becomes what rank owners[i] has of it. REQUIRES: as above.
void gather_reports(Collectives& collectives, std::span<const int> owners, std::vector<BatchReport>& reports,
                    const std::string& what);

}  // namespace carnot
