// retrieval/bm25/build_folder.h -- the folder FILE.partial in which a large file is built, by one process at a time.
//
// What lies in it outlives the process, so a build that was stopped or killed can go on. Whoever builds says in it how
// far the build has come.
#pragma once

#include <filesystem>
#include <string>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"

namespace carnot {

class BuildFolder {
 public:
  /// Makes the folder where it is missing. The error says that another process builds `file`, or why it cannot be made.
  static Result<BuildFolder> open(const std::filesystem::path& file);

  const std::filesystem::path& path() const { return path_; }
  /// Of a file in it.
  std::filesystem::path path(const std::string& name) const { return path_ / name; }

  /// With all that is in it.
  void remove();

 private:
  BuildFolder() = default;

  std::filesystem::path path_{};
  Descriptor lock_{};
};

}  // namespace carnot
