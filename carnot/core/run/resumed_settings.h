// run/resumed_settings.h -- a resumed run keeps its settings, unless the user allows changes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/core/run/setting_difference.h"

namespace carnot {

/// In what `recipe` differs from `config`, the recorded config.yaml of the resumed run; nothing if it is not
/// there. Fails if a setting differs that decides what is learned, and resume_changes is `refuse`: the message has a
/// line for each, with both values. Where they are allowed, a warning has those lines. What only says how long, how
/// fast and how closely watched a run is, may always change (how_long_or_how_fast()).
Result<std::vector<SettingDifference>> check_resumed_settings(Recipe& recipe, const std::filesystem::path& config);

/// Keys that a run may change when it resumes: train.steps, how often it is evaluated and saved, what is reported
/// where, what bounds its memory and time without changing a bit of what it samples.
bool how_long_or_how_fast(std::string_view key);

/// Writes `recipe` as the folder's config.yaml. Where the run resumed with other settings, what held until `step` stays
/// in earlier_configs/until_step_N.yaml.
Status write_config(const RunFolder& folder, Recipe& recipe, std::int64_t step);

}  // namespace carnot
