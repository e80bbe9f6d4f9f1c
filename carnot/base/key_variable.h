// base/key_variable.h -- keys of servers, which are named by an environment variable and never written down.
#pragma once

#include <string>

#include "carnot/base/result.h"

namespace carnot {

/// What the environment variable holds, without blanks around it; nothing where `name` is empty. The error says after
/// `where` what is wrong, and never shows the name: it may be the key itself, given by mistake.
Result<std::string> key_of_variable(const std::string& name, const std::string& where);

}  // namespace carnot
