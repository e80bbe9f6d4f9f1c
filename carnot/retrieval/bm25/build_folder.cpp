#include "carnot/retrieval/bm25/build_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "carnot/core/base/file.h"

namespace carnot {
namespace {

/// Whether the open file is still the one of that name: its folder may have been removed meanwhile.
bool is_named(const Descriptor& file, const std::filesystem::path& name) {
  struct stat held{}, named{};
  return ::fstat(file.get(), &held) == 0 && ::stat(name.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

}  // namespace

Result<BuildFolder> BuildFolder::open(const std::filesystem::path& file) {
  BuildFolder folder;
  folder.path_ = file.string() + ".partial";
  const auto name = folder.path("lock");
  do {
    CARNOT_RETURN_IF_ERROR(make_folder(folder.path_));
    folder.lock_ = Descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!folder.lock_.is_open()) return system_error(folder.path_, "cannot write");
    if (::flock(folder.lock_.get(), LOCK_EX | LOCK_NB) != 0)
      return Error{file.string() + ": another process is building it (" + folder.path_.string() + ")"};
  } while (!is_named(folder.lock_, name));
  return folder;
}

void BuildFolder::remove() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace carnot
