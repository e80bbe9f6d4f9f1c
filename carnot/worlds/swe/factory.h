// worlds/swe/factory.h -- the environment `swe`: repositories to repair, the project's own thirty, others in their
// format, or SWE-bench's rows. And the script that repairs one: it looks at the files that the repair changes, changes
// them, runs the tests that it can see, and finishes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/env/environment.h"
#include "carnot/worlds/swe/scaffold.h"
#include "carnot/worlds/swe/task.h"

namespace carnot {

/// The thirty, by difficulty and name.
Result<std::vector<SweTask>> built_in_swe_tasks();

/// NAME.task in a folder, in the same order. The error names every file that cannot be read.
Result<std::vector<SweTask>> read_swe_tasks(const std::string& folder);

/// Rows of a file (swe_bench.h); the repository of each is the folder of its name in `repositories`.
Result<std::vector<SweTask>> read_swe_bench(const std::string& file, const std::string& repositories);

std::unique_ptr<EnvironmentFactory> make_swe();

/// The calls of a demonstration. REQUIRES: the task has its author's repair.
std::vector<SweCall> demonstrated_calls(const SweTask& task);

/// Null if the task has no such repair.
std::unique_ptr<ScriptedAgent> make_swe_agent(const SweTask& task);

}  // namespace carnot
