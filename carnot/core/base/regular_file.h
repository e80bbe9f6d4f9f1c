// base/regular_file.h -- files for readers that seek in them or map them.
#pragma once

#include <filesystem>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"

namespace carnot {

/// Opens it for reading. A pipe, a device or a folder is refused; a pipe's writer is not waited for.
Result<Descriptor> open_regular_file(const std::filesystem::path& path);

}  // namespace carnot
