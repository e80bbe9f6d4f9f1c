#include "carnot/core/run/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "carnot/core/base/file.h"

namespace carnot {
Result<AppendFile> AppendFile::open(const std::filesystem::path& path) {
  Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!descriptor.is_open()) return system_error(path, "cannot open for appending");
  CARNOT_RETURN_IF_ERROR(sync_path(path.has_parent_path() ? path.parent_path() : "."));
  return AppendFile(path, std::move(descriptor));
}

Status AppendFile::append(std::string_view record) {
  struct stat before{};
  if (::fstat(descriptor_.get(), &before) != 0) return system_error(path_, "cannot append");
  struct stat named{};
  if (::stat(path_.c_str(), &named) != 0 || named.st_ino != before.st_ino || named.st_dev != before.st_dev)
    return Error{path_.string() + ": was deleted or replaced while it was written"};
  while (!record.empty()) {
    const ssize_t written = ::write(descriptor_.get(), record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const Error error = system_error(path_, "cannot append");
      if (::ftruncate(descriptor_.get(), before.st_size) != 0)
        return Error{error.message + "; its last record is incomplete"};
      return error;
    }
    record.remove_prefix(written);
  }
  return Done{};
}

Status AppendFile::sync() {
  if (::fsync(descriptor_.get()) != 0) return system_error(path_, "cannot sync");
  return Done{};
}

}  // namespace carnot
