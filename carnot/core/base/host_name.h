// host_name.h -- the name of the machine that the process runs on.
#pragma once

#include <string>

namespace carnot {

/// As gethostname(2) has it; "unknown" if the system does not say.
std::string host_name();

}  // namespace carnot
