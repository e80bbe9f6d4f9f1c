// text/refused_call.h -- what a policy reads of a call that cannot be read.
#pragma once

#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

inline Error refused_call(const std::string& why) { return Error{"this tool call cannot be read: " + why}; }

}  // namespace carnot
