// remote_rollouts/remote_rollouts.h -- a training run's rollouts by workers (rollout.workers): what they need is
// served, the steps' groups are handed out as tasks, and what comes back is put together as one rollout.
//
// With rollout.max_staleness tasks of later steps are handed out, too, and results come while the trainer updates.
// Which groups a step has does not depend on that, only the weights that sampled them do
// (remote_rollouts/transport/staleness.h).
#pragma once

#include "carnot/core/train/trainer.h"
#include "carnot/remote_rollouts/transport/messages.h"

namespace carnot {

/// The groups of a task, and their draws.
StepTasks tasks_of(const WorkerTask& task);

/// Makes workers the service of recipes with rollout.workers. What can be refused before anything is loaded is: an
/// address or a key that cannot be used, a broker that refuses.
void offer_remote_rollouts();

}  // namespace carnot
