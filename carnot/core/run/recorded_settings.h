// run/recorded_settings.h -- the settings that a run has recorded in its config.yaml, and in which others differ.
//
// A resumed run keeps its settings, unless the user allows changes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

struct SettingDifference {
  std::string key{};       ///< by its dotted name
  std::string recorded{};  ///< "not set" where the recipe has no such key
  std::string now{};
};

/// "train.steps: 100 recorded, 130 now"
std::string in_words(const SettingDifference& difference);

/// Keys that do not count, by their dotted name.
using Ignored = std::function<bool(std::string_view key)>;
inline const Ignored kNoKey = [](std::string_view) { return false; };

/// run_folder, resume, resume_changes and threads never count: they say where and how a run is computed, not what. What
/// is "auto" now, or a number of shards that is 0, may have become anything in the recorded recipe.
std::vector<SettingDifference> differing_settings(Recipe& recorded, Recipe& now, const Ignored& ignored = kNoKey);

/// The same for a recorded config.yaml. Where it is not there, nothing differs. Fails if it cannot be read.
Result<std::vector<SettingDifference>> differing_settings(const std::filesystem::path& config, Recipe& now,
                                                          const Ignored& ignored = kNoKey);

/// Compares `recipe` with `config`, the recorded config.yaml of the resumed run, if that exists. Fails if a setting
/// differs that decides what is learned, and resume_changes is `refuse`: the message has a line for each, with both
/// values. Where they are allowed, a warning has those lines. What only says how long, how fast and how closely watched
/// a run is, may always change (how_long_or_how_fast()).
Status check_resumed_settings(Recipe& recipe, const std::filesystem::path& config);

/// Keys that a run may change when it resumes: train.steps, how often it is evaluated and saved, what is reported
/// where, what bounds its memory and time without changing a bit of what it samples.
bool how_long_or_how_fast(std::string_view key);

/// Writes `recipe` as the folder's config.yaml. Where the run resumed with other settings, what held until `step` stays
/// in earlier_configs/until_step_N.yaml.
Status write_config(const RunFolder& folder, Recipe& recipe, std::int64_t step);

}  // namespace carnot
