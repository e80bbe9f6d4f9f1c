// train/append_file.h -- a file that grows by whole records: a record is there entirely or not at all.
#pragma once

#include <filesystem>
#include <string_view>

#include "carnot/base/result.h"

namespace carnot {

class AppendFile {
 public:
  /// Opens for appending; makes the file if need be.
  static Result<AppendFile> open(const std::filesystem::path& path);

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  /// Hands `record` to the system. Where it does not fit (full disk), the file is cut back to what it was.
  Status append(std::string_view record);

 private:
  AppendFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_;
};

}  // namespace carnot
