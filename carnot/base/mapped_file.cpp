#include "carnot/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "carnot/base/descriptor.h"
#include "carnot/base/system_error.h"

namespace carnot {

Result<std::shared_ptr<MappedFile>> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // do not wait for a pipe
  if (!file.is_open()) return system_error(path, "cannot open");
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return system_error(path, "cannot read");
  if (!S_ISREG(info.st_mode)) return Error{path.string() + ": is not a regular file"};
  const auto size = static_cast<std::size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return system_error(path, "cannot read");
  return std::shared_ptr<MappedFile>(new MappedFile(static_cast<char*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(data_, size_);
}

}  // namespace carnot
