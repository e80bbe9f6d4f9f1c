// alarm/example.h -- a trajectory that shows what an alarm is about, in a line.
#pragma once

#include <span>
#include <string>

#include "carnot/core/alarm/alarms.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/data/trajectory.h"

namespace carnot {

/// "score 0, turn 2 of 3: ..." with the end of the turn's response, on one line; empty if no trajectory is an example.
std::string example(ExampleOf what, std::span<const Trajectory> trajectories, const Decode& decode);

}  // namespace carnot
