// base/mapped_file.h -- a memory-mapped file: pages are loaded when they are accessed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// A private mapping: writes do not reach the disk.
class MappedFile {
 public:
  static Result<std::shared_ptr<MappedFile>> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  char* data() const { return data_; }
  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(char* data, std::size_t size) : data_(data), size_(size) {}

  char* data_;
  std::size_t size_;
};

}  // namespace carnot
