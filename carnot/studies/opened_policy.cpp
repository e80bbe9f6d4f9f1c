#include "carnot/studies/opened_policy.h"

#include "carnot/core/base/random.h"
#include "carnot/core/branch/branch.h"
#include "carnot/core/rollout/measure.h"
#include "carnot/core/rollout/rollout.h"
#include "carnot/core/run/find_run.h"

namespace carnot {

Result<OpenedPolicy> open_policy(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  CARNOT_ASSIGN_OR_RETURN(const auto checkpoint, find_checkpoint(path));
  CARNOT_ASSIGN_OR_RETURN(const auto config, find_config(checkpoint));
  CARNOT_ASSIGN_OR_RETURN(auto recipe, load_recorded(config, overrides));
  OpenedPolicy opened{.checkpoint = checkpoint, .recipe = std::move(recipe)};
  CARNOT_RETURN_IF_ERROR(ModelBundle::prepare_device(opened.recipe.run));
  CARNOT_ASSIGN_OR_RETURN(auto bundle, ModelBundle::make(opened.recipe, checkpoint));
  opened.bundle = std::move(bundle);
  return opened;
}

std::vector<Group> roll_out(OpenedPolicy& policy, Engine& engine, int tasks) {
  const EnvironmentFactory& environment = *policy.recipe.environment;
  std::vector<RolloutTask> wanted;
  for (std::int64_t task = 0; task < tasks; ++task)
    wanted.push_back({.uid = "validation_" + std::to_string(task), .task_index = task, .make = [&environment, task] {
                        return environment.make(Split::Validation, task);
                      }});
  const auto seed = derive_seed(static_cast<std::uint64_t>(policy.recipe.run.seed), "analysis");
  Rollout rollout =
      roll_out(engine, *policy.bundle.chat, *independent(), wanted, policy.recipe.rollout.options, {.seed = seed});
  reuse_rollout_statistics(rollout.groups);
  return std::move(rollout.groups);
}

}  // namespace carnot
