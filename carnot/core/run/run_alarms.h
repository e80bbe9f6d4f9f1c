// run/run_alarms.h -- the alarms of a training run: what they know of its recipe, and how its user learns of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "carnot/core/alarm/watch.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/run/progress.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

AlarmSetting alarm_setting(const Recipe& recipe);

/// Prints them, with examples from the step's groups where these are known.
void print_alarms(Progress& progress, const std::vector<RaisedAlarm>& raised, std::int64_t step,
                  std::span<const Group> groups, const Decode& decode);

}  // namespace carnot
