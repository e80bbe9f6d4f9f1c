// base/system_error.h -- converts a failed system call into an error.
#pragma once

#include <filesystem>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

/// "path: what: reason"; the reason is the current errno.
Error system_error(const std::filesystem::path& path, const std::string& what);

}  // namespace carnot
