#include "carnot/core/run/recorded_settings.h"

#include <algorithm>
#include <map>
#include <set>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// A name that ends in '*' means every key that begins so.
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
                                          "alarm.*",
                                          "memory.check",
                                          "memory.limit_megabytes",
                                          "rollout.cache_tokens",
                                          "rollout.max_batch_tokens",
                                          "rollout.environment_threads",
                                          "rollout.workers*",
                                          "distributed.*",
                                          "track.*"};

std::string listed(const std::vector<SettingDifference>& differences) {
  std::string text;
  for (const SettingDifference& difference : differences) text += "\n  " + in_words(difference);
  return text;
}

std::map<std::string, std::string> values_of(Recipe& recipe) {
  std::map<std::string, std::string> values;
  const FieldTable table = recipe.table();
  for (const FieldRow& row : table.rows()) values[row.key] = row.value;
  return values;
}

constexpr std::string_view kShards = "train.virtual_shards";

std::string shown(const std::map<std::string, std::string>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "not set" : found->second;
}

/// Runs that wrote down no number of shards were made by one process.
std::string recorded_value(const std::map<std::string, std::string>& values, const std::string& key) {
  const std::string value = shown(values, key);
  return key == kShards && value == "0" ? "1" : value;
}

/// A run writes down what became of it.
bool is_left_open(std::string_view key, std::string_view value) {
  return value == "auto" || (key == kShards && value == "0");
}

/// Synchronously `auto` gives the bits of `rollout`. Asynchronously it gives another objective.
bool changes_the_objective(const std::map<std::string, std::string>& recorded, const std::string& key) {
  return key == "rollout.old_log_probs" && shown(recorded, key) == "rollout" &&
         shown(recorded, "rollout.max_staleness") != "0";
}

}  // namespace

std::string in_words(const SettingDifference& difference) {
  return difference.key + ": " + difference.recorded + " recorded, " + difference.now + " now";
}

std::vector<SettingDifference> differing_settings(Recipe& recorded, Recipe& now, const Ignored& ignored) {
  static const std::set<std::string> kNeverCount{"run_folder", "resume", "resume_changes", "threads"};
  const auto left = values_of(recorded), right = values_of(now);
  std::set<std::string> keys;
  for (const auto& values : {left, right})
    for (const auto& [key, value] : values) keys.insert(key);
  std::vector<SettingDifference> differing;
  for (const std::string& key : keys) {
    if (kNeverCount.contains(key) || ignored(key)) continue;
    SettingDifference difference{.key = key, .recorded = recorded_value(left, key), .now = shown(right, key)};
    const bool left_open = is_left_open(key, difference.now) && !changes_the_objective(left, key);
    if (difference.recorded != difference.now && !left_open) differing.push_back(std::move(difference));
  }
  return differing;
}

Result<std::vector<SettingDifference>> differing_settings(const std::filesystem::path& config, Recipe& now,
                                                          const Ignored& ignored) {
  if (!std::filesystem::exists(config)) return std::vector<SettingDifference>{};
  CARNOT_ASSIGN_OR_RETURN(auto recorded, Recipe::load_recorded(config, {}));
  return differing_settings(recorded, now, ignored);
}

bool how_long_or_how_fast(std::string_view key) {
  return std::ranges::any_of(kFreeKeys, [key](std::string_view free) {
    return free.ends_with('*') ? key.starts_with(free.substr(0, free.size() - 1)) : key == free;
  });
}

Status check_resumed_settings(Recipe& recipe, const fs::path& config) {
  const bool allowed = recipe.run.resume_changes == "allow";
  auto differing = differing_settings(config, recipe);
  if (!differing && !allowed)
    return Error{differing.error().message + "\n" + config.string() +
                 ": cannot be compared with the settings that are asked for; resume_changes=allow resumes without the "
                 "comparison"};
  if (!differing) {
    log_warning(config.string() + ": cannot be compared: " + differing.error().message);
    return Done{};
  }
  std::vector<SettingDifference> decisive;
  std::ranges::copy_if(*differing, std::back_inserter(decisive),
                       [](const SettingDifference& difference) { return !how_long_or_how_fast(difference.key); });
  if (decisive.empty()) return Done{};
  if (!allowed)
    return Error{config.string() + ": the run to resume was made with other settings:" + listed(decisive) +
                 "\nexpected the recorded ones, resume_changes=allow to take the new ones, or another run_folder"};
  log_warning(config.string() + ": the run continues with other settings:" + listed(decisive));
  return Done{};
}

Status write_config(const RunFolder& folder, Recipe& recipe, std::int64_t step) {
  // The permission is for this start alone: who runs config.yaml again is asked again.
  const std::string permission = std::exchange(recipe.run.resume_changes, "refuse");
  const std::string text = recipe.to_yaml();
  recipe.run.resume_changes = permission;
  const auto differing = differing_settings(folder.config(), recipe);
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
