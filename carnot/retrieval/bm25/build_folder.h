// retrieval/bm25/build_folder.h -- the folder FILE.partial in which a large file is built, by one process at a time.
//
// What lies in it outlives the process, so a build that was stopped or killed can continue. The builder says in it
// how far the build has come.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/file.h"
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

/// A file that grows at its end.
class GrowingFile {
 public:
  /// Opens it and drops what is beyond `size`; the file is made if need be.
  static Result<GrowingFile> open(const std::filesystem::path& path, std::uint64_t size) {
    GrowingFile file;
    file.path_ = path;
    {
      std::ofstream make(path, std::ios::binary | std::ios::app);
    }
    std::error_code reason;
    std::filesystem::resize_file(path, size, reason);
    if (reason) return Error{path.string() + ": cannot write: " + reason.message()};
    file.out_.open(path, std::ios::binary | std::ios::app);
    file.size_ = size;
    return file;
  }

  void write(std::string_view bytes) {
    out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    size_ += bytes.size();
  }
  template <class Value>
  void write_value(const Value& value) {
    write({reinterpret_cast<const char*>(&value), sizeof value});
  }
  void write_zeros_to(std::uint64_t multiple) { write(std::string((multiple - size_ % multiple) % multiple, '\0')); }

  /// Says whether everything was written so far; syncs it.
  Status sync() {
    out_.flush();
    if (!out_) return system_error(path_, "cannot write");
    return sync_path(path_);
  }
  std::uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_{};
  std::ofstream out_{};
  std::uint64_t size_ = 0;
};

}  // namespace carnot
