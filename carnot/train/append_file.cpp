#include "carnot/train/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace carnot {
namespace {

Error system_error(const std::filesystem::path& path, const std::string& what) {
  return {path.string() + ": " + what + ": " + std::strerror(errno)};
}

}  // namespace

Result<AppendFile> AppendFile::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) return system_error(path, "cannot open for appending");
  return AppendFile(path, descriptor);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status AppendFile::append(std::string_view record) {
  struct stat before {};
  if (::fstat(descriptor_, &before) != 0) return system_error(path_, "cannot append");
  while (!record.empty()) {
    const ssize_t written = ::write(descriptor_, record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const Error error = system_error(path_, "cannot append");
      if (::ftruncate(descriptor_, before.st_size) != 0)
        return Error{error.message + "; its last record is incomplete"};
      return error;
    }
    record.remove_prefix(static_cast<std::size_t>(written));
  }
  return Done{};
}

}  // namespace carnot
