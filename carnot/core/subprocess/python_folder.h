// subprocess/python_folder.h -- where Carnot's own Python files are, and what runs them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

/// The folder of carnot_environment.py and its neighbours: CARNOT_PYTHON in the environment, or next to the program, in
/// the source tree (build/carnot) or installed (bin/carnot). The error names the folders that were tried.
Result<std::filesystem::path> python_folder();

/// The interpreter for those files: of the virtual environment `.venv` next to `folder`, where tools/install.sh puts
/// what they need; without one, python3 as PATH has it.
std::string own_python(const std::filesystem::path& folder);

/// Environment variables for a program that talks to Carnot in Python: PYTHONPATH with the folder appended, where there
/// is one, and CARNOT_PROTOCOL, at which carnot_protocol.py keeps the pipes from whatever the program starts.
std::vector<std::string> python_variables();

}  // namespace carnot
