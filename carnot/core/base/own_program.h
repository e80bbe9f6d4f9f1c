// base/own_program.h -- where the small programs are that come with the library.
#pragma once

#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

/// The program `name`: what the environment variable `variable` names, or next to the running program, or installed
/// (libexec/carnot). The error names the places.
Result<std::string> find_own_program(const std::string& name, const std::string& variable);

}  // namespace carnot
