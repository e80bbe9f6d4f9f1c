// base/system_error.h -- a system call's failure as an error.
#pragma once

#include <filesystem>
#include <string>

#include "carnot/base/result.h"

namespace carnot {

/// "path: what: reason", with the reason that errno holds now.
Error system_error(const std::filesystem::path& path, const std::string& what);

}  // namespace carnot
