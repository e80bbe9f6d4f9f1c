#include "carnot/view/command/after_step.h"

#include <algorithm>

#include "carnot/core/rollout/measure.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "carnot/core/run/find_run.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/core/train/model_bundle.h"

namespace carnot {

Result<AfterStep> measure_after(const std::filesystem::path& run, std::int64_t step, const std::vector<Group>& groups) {
  if (run.empty()) return Error{"--after: these rollouts are in no run folder, so that there are no checkpoints"};
  const RunFolder folder{run};
  CARNOT_ASSIGN_OR_RETURN(const auto steps, checkpoint_steps(folder.checkpoints()));
  const auto found = std::ranges::lower_bound(steps, step);
  if (found == steps.end()) return AfterStep{};
  const auto checkpoint = checkpoint_path(folder.checkpoints(), *found);
  CARNOT_RETURN_IF_ERROR(verify_checkpoint(checkpoint));
  CARNOT_ASSIGN_OR_RETURN(auto recipe, load_recorded(folder.config(), {}));
  CARNOT_RETURN_IF_ERROR(ModelBundle::prepare_device(recipe.run));
  CARNOT_ASSIGN_OR_RETURN(const auto bundle, ModelBundle::make(recipe, checkpoint));
  AfterStep after{.checkpoint = *found, .groups = groups};
  measure_old_policy(
      *bundle.policy, after.groups,
      {.max_tokens = recipe.rollout.log_prob_tokens, .temperature = recipe.rollout.options.sampling.temperature});
  return after;
}

}  // namespace carnot
