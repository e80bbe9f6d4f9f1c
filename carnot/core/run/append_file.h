// run/append_file.h -- a file that grows by whole records: a record is complete or absent.
#pragma once

#include <filesystem>
#include <string_view>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"

namespace carnot {

class AppendFile {
 public:
  /// Opens for appending; makes the file if need be.
  static Result<AppendFile> open(const std::filesystem::path& path);

  /// Hands `record` to the system. Where it does not fit (full disk), the file is cut back to what it was. Also an
  /// error where the file was deleted or replaced meanwhile: what is appended would be lost.
  Status append(std::string_view record);

  /// Makes what was appended survive a power cut.
  Status sync();

 private:
  AppendFile(std::filesystem::path path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path path_;
  Descriptor descriptor_;
};

}  // namespace carnot
