#include "carnot/core/run/setting_difference.h"

#include <map>
#include <set>

namespace carnot {
namespace {

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

}  // namespace carnot
