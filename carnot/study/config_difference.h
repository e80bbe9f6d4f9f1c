// study/config_difference.h -- whether a run folder holds the run that is asked for.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/base/result.h"
#include "carnot/train/recipe.h"

namespace carnot {

/// Keys that do not count, by their dotted name.
using Ignored = std::function<bool(std::string_view key)>;

/// "train.steps: 100 there, 130 here", a line per key that differs. run_folder, resume and threads never count: they
/// say where and how a run is computed, not what; what is "auto" here may have become anything there.
std::vector<std::string> differing_settings(Recipe& there, Recipe& here, const Ignored& ignored);

/// The same for the config.yaml of a run folder; empty where there is none. Fails where it cannot be read.
Result<std::vector<std::string>> differing_settings(const std::filesystem::path& run_folder, Recipe& here,
                                                    const Ignored& ignored);

}  // namespace carnot
