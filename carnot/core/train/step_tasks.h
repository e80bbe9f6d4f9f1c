// train/step_tasks.h -- the tasks of a training step.
#pragma once

#include <cstdint>
#include <vector>

#include "carnot/core/rollout/rollout.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

/// Some of a step's tasks: number first_task + i is group key.first_group + i of the step.
struct StepTasks {
  std::int64_t first_task = 0;
  std::int64_t groups = 0;
  RolloutKey key{};
};

/// Those of step `step`; `refill`: 0, or which of the batches after the first. Tasks are numbered through the run;
/// refills take theirs from after the run's last step.
StepTasks step_tasks(const Recipe& recipe, std::int64_t step, int refill, std::int64_t policy_version);

/// A training task, to be rolled out. The recipe must outlive it.
RolloutTask training_task(const Recipe& recipe, std::int64_t index);

/// What roll_out() gets for them. The recipe must outlive it.
std::vector<RolloutTask> rollout_tasks(const Recipe& recipe, const StepTasks& tasks);

}  // namespace carnot
