#include "carnot/core/base/system_error.h"

#include <cerrno>
#include <cstring>

namespace carnot {

Error system_error(const std::filesystem::path& path, const std::string& what) {
  return {path.string() + ": " + what + ": " + std::strerror(errno)};
}

}  // namespace carnot
