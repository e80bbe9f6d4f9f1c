// process/python_folder.h -- where Carnot's own Python files are.
#pragma once

#include <filesystem>

#include "carnot/base/result.h"

namespace carnot {

/// The folder of carnot_environment.py and its neighbours: CARNOT_PYTHON in the environment, or beside the program, in
/// the source tree (build/carnot) or installed (bin/carnot). The error names the folders that were tried.
Result<std::filesystem::path> python_folder();

}  // namespace carnot
