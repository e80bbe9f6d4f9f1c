// base/key_variable.h -- API keys of servers, which are named by an environment variable and never written down.
#pragma once

#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

/// The value of the environment variable, without surrounding blanks; empty if `name` is empty. The error begins with
/// `where` and never shows the name, because it could be the key itself, entered by mistake.
Result<std::string> key_of_variable(const std::string& name, const std::string& where);

}  // namespace carnot
