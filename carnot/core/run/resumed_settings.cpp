#include "carnot/core/run/resumed_settings.h"

#include <algorithm>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFreeKeys[] = {"train.steps",
                                          "train.max_sampled_tokens",
                                          "train.save_every",
                                          "train.save_minutes",
                                          "train.save_optimizer",
                                          "train.max_checkpoints",
                                          "train.keep_rollouts",
                                          "eval.every",
                                          "sft.log_every",
                                          "sft.eval_every",
                                          "memory.check",
                                          "memory.limit_megabytes",
                                          "rollout.cache_tokens",
                                          "rollout.max_batch_tokens",
                                          "rollout.environment_threads",
                                          "rollout.workers",
                                          "rollout.workers_listen",
                                          "rollout.workers_port",
                                          "rollout.workers_url",
                                          "rollout.workers_key_env",
                                          "rollout.workers_credentials",
                                          "rollout.workers_authority",
                                          "rollout.workers_certificate",
                                          "rollout.workers_private_key",
                                          "rollout.workers_task_groups",
                                          "rollout.workers_lease_seconds",
                                          "rollout.workers_uploads",
                                          "distributed.join_seconds",
                                          "distributed.lost_after_seconds",
                                          "distributed.hung_after_seconds",
                                          "track.command",
                                          "track.transcripts",
                                          "track.finish_seconds"};

std::string listed(const std::vector<SettingDifference>& differences) {
  std::string text;
  for (const SettingDifference& difference : differences) text += "\n  " + in_words(difference);
  return text;
}

const Ignored kNothing = [](std::string_view) { return false; };

}  // namespace

bool how_long_or_how_fast(std::string_view key) { return std::ranges::find(kFreeKeys, key) != std::end(kFreeKeys); }

Result<std::vector<SettingDifference>> check_resumed_settings(Recipe& recipe, const fs::path& config) {
  const bool allowed = recipe.run.resume_changes == "allow";
  auto differing = differing_settings(config, recipe, kNothing);
  if (!differing && !allowed)
    return Error{differing.error().message + "\n" + config.string() +
                 ": cannot be compared with the settings that are asked for; resume_changes=allow resumes without the "
                 "comparison"};
  if (!differing) {
    log_warning(config.string() + ": cannot be compared: " + differing.error().message);
    return std::vector<SettingDifference>{};
  }
  std::vector<SettingDifference> decisive;
  std::ranges::copy_if(*differing, std::back_inserter(decisive),
                       [](const SettingDifference& difference) { return !how_long_or_how_fast(difference.key); });
  if (decisive.empty()) return differing;
  if (!allowed)
    return Error{config.string() + ": the run to resume was made with other settings:" + listed(decisive) +
                 "\nexpected the recorded ones, resume_changes=allow to take the new ones, or another run_folder"};
  log_warning(config.string() + ": the run continues with other settings:" + listed(decisive));
  return differing;
}

Status write_config(const RunFolder& folder, Recipe& recipe, std::int64_t step) {
  // The permission is for this start alone: who runs config.yaml again is asked again.
  const std::string permission = std::exchange(recipe.run.resume_changes, "refuse");
  const std::string text = recipe.to_yaml();
  recipe.run.resume_changes = permission;
  const auto differing = differing_settings(folder.config(), recipe, kNothing);
  if (!differing || !differing->empty()) {
    CARNOT_ASSIGN_OR_RETURN(const auto recorded, read_file(folder.config()));
    const fs::path kept = folder.earlier_configs() / ("until_step_" + std::to_string(step) + ".yaml");
    // A comparison that failed on a passing read error is no change. A configuration that is replaced at the step it
    // began at has trained nothing.
    if (recorded != text && !fs::exists(kept)) {
      CARNOT_RETURN_IF_ERROR(make_folder(folder.earlier_configs()));
      CARNOT_RETURN_IF_ERROR(write_file_atomically(kept, recorded));
    }
  }
  return write_file_atomically(folder.config(), text);
}

}  // namespace carnot
