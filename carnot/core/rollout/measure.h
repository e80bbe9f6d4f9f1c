// rollout/measure.h -- measures finished trajectories by forward passes: columns of log-probabilities, entropies,
// energies and values.
//
// Sequences are packed into micro-batches without padding. A turn that several trajectories share is measured once.
// Except in measure_rollout(), leaves that do not count are skipped; their own turns hold NaN. Nothing here uses
// gradients.
#pragma once

#include <cstdint>
#include <span>

#include "carnot/core/data/tree.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/nn/value_model.h"
#include "carnot/core/rollout/log_prob_pass.h"

namespace carnot {

/// LogProbOld and EntropyOld: the policy before its first update on these data.
void measure_old_policy(const Model& policy, std::span<Group> groups, const LogProbPassOptions& options);

/// The difference between two columns of log-probabilities.
struct ColumnDifference {
  std::int64_t tokens = 0;
  double largest = 0;  ///< nats
};

/// Measures LogProbRollout and EntropyRollout again, including failed and dropped leaves, for rollouts of a machine
/// whose kernels give other bits. With the weights that sampled, the numbers are those of the engine here. Returns the
/// difference from the old values.
ColumnDifference measure_rollout(const Model& policy, std::span<Group> groups, const LogProbPassOptions& options);

/// LogProbOld and EntropyOld without a pass: what LogProbRollout and EntropyRollout hold. REQUIRES: those columns.
void reuse_rollout_statistics(std::span<Group> groups);

/// LogProbReference and EntropyReference at the temperature; EnergyReference = -logsumexp of the raw logits.
void measure_reference(const Model& reference, std::span<Group> groups, const LogProbPassOptions& options);

/// Value: the critic's, of the context that each sampled token continues.
void measure_values(const ValueModel& critic, std::span<Group> groups, const LogProbPassOptions& options);

}  // namespace carnot
