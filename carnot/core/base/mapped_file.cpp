#include "carnot/core/base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "carnot/core/base/regular_file.h"
#include "carnot/core/base/system_error.h"

namespace carnot {

Result<std::shared_ptr<MappedFile>> MappedFile::open(const std::filesystem::path& path) {
  CARNOT_ASSIGN_OR_RETURN(const auto file, open_regular_file(path));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return system_error(path, "cannot read");
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
