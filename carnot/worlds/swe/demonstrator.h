// worlds/swe/demonstrator.h -- repairs a repository by script: looks at the files that the repair changes, changes
// them, runs the tests that it can see, and finishes.
#pragma once

#include <memory>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/worlds/swe/scaffold.h"
#include "carnot/worlds/swe/task.h"

namespace carnot {

/// The calls of a demonstration. REQUIRES: the task has its author's repair.
std::vector<SweCall> demonstrated_calls(const SweTask& task);

/// Null if the task has no such repair.
std::unique_ptr<ScriptedAgent> make_swe_agent(const SweTask& task);

}  // namespace carnot
