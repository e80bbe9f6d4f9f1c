// run/setting_difference.h -- the settings in which two recipes differ: an existing run's and the requested one's.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
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

/// run_folder, resume, resume_changes and threads never count: they say where and how a run is computed, not what. What
/// is "auto" now, or a number of shards that is 0, may have become anything in the recorded recipe.
std::vector<SettingDifference> differing_settings(Recipe& recorded, Recipe& now, const Ignored& ignored);

/// The same for a recorded config.yaml. Where it is not there, nothing differs. Fails if it cannot be read.
Result<std::vector<SettingDifference>> differing_settings(const std::filesystem::path& config, Recipe& now,
                                                          const Ignored& ignored);

}  // namespace carnot
