// run/stopping.h -- how a run ends before its time, and what its user reads then.
#pragma once

#include <cstdint>
#include <string>

#include "carnot/core/rollout/rollout.h"
#include "carnot/core/run/stages.h"

namespace carnot {

/// Whether anyone asked any rank to stop.
bool stop_is_requested(const Run& run);

/// Rollouts that end where the run is asked to stop.
RolloutEvents stoppable(const RunControl& control);

/// "after training step 3; a checkpoint is written"
std::string after_step(const std::string& stage, std::int64_t step);

/// "To continue: carnot train runs/run resume=auto": the whole command where the run knows it.
std::string how_to_continue(const Run& run);

/// Tells the user that the run stopped `where`, and how it continues.
RunEnd stopped(Run& run, const std::string& where);

/// The same of a run that alarms of these names ended (alarm.stop).
RunEnd ended_by_alarm(Run& run, const std::string& names, const std::string& where);

/// The end of a run that cannot continue, with a checkpoint behind it.
Error ended_by(const Run& run, const std::string& why);

}  // namespace carnot
