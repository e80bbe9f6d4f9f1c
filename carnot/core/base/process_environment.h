// base/process_environment.h -- what the environment of the process says: API keys, which are named by a variable and
// never written down, and where the programs and files are that come with the library.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

/// The value of the environment variable, without surrounding blanks; empty if `name` is empty. The error begins with
/// `where` and never shows the name, because it could be the key itself, entered by mistake.
Result<std::string> key_of_variable(const std::string& name, const std::string& where);

/// The program `name`: what the environment variable `variable` names, or next to the running program, or installed
/// (libexec/carnot). The error names the places.
Result<std::string> find_own_program(const std::string& name, const std::string& variable);

/// Where the folder `name` of files that come with the running program may be: in the source tree of a build folder, or
/// installed (share/carnot). Whether it exists is not checked.
Result<std::vector<std::filesystem::path>> own_folders(const std::string& name);

}  // namespace carnot
