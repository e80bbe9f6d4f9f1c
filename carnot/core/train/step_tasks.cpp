#include "carnot/core/train/step_tasks.h"

#include "carnot/core/base/random.h"

namespace carnot {

StepTasks step_tasks(const Recipe& recipe, std::int64_t step, int refill, std::int64_t policy_version) {
  const std::int64_t groups = recipe.train.groups_per_step;
  return {.first_task = (refill * recipe.train.steps + step) * groups,
          .groups = groups,
          .key = {.seed = derive_seed(static_cast<std::uint64_t>(recipe.run.seed), "rollout"),
                  .step = step,
                  .first_group = static_cast<std::uint64_t>(refill * groups),
                  .policy_version = static_cast<int>(policy_version)}};
}

RolloutTask training_task(const Recipe& recipe, std::int64_t index) {
  const EnvironmentFactory& environment = *recipe.environment;
  return {.uid = "train_" + std::to_string(index),
          .environment = recipe.environment_name,
          .task_index = index,
          .make = [&environment, index] { return environment.make(Split::Train, index); }};
}

std::vector<RolloutTask> rollout_tasks(const Recipe& recipe, const StepTasks& tasks) {
  std::vector<RolloutTask> all;
  for (std::int64_t i = 0; i < tasks.groups; ++i) all.push_back(training_task(recipe, tasks.first_task + i));
  return all;
}

}  // namespace carnot
