#include "carnot/core/base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "carnot/core/base/system_error.h"

namespace carnot {

Result<Descriptor> open_regular_file(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return system_error(path, "cannot open");
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return system_error(path, "cannot read");
  if (!S_ISREG(info.st_mode)) return Error{path.string() + ": is not a regular file"};
  return file;
}

}  // namespace carnot
