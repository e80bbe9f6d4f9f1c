// retrieval/bm25/passage_source.h -- the passages' file: its lines, from any of its bytes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// CRC-64 of `bytes`, after those that gave `so_far`.
std::uint64_t checksum_of(std::string_view bytes, std::uint64_t so_far = 0);

class PassageSource {
 public:
  /// A regular file, decompressed where its name ends in .xz.
  static Result<PassageSource> open(const std::filesystem::path& path);

  void seek(std::uint64_t byte);
  /// As read_line() of base/file.h.
  Result<bool> next(std::string& line);

  const std::string& name() const { return name_; }
  std::uint64_t at() const { return at_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t mark() const { return mark_; }  ///< a checksum of its beginning and its end

 private:
  std::uint64_t checksum_at(std::uint64_t byte, std::uint64_t size, std::uint64_t so_far);

  std::string name_{};
  std::unique_ptr<std::istream> in_{};
  std::uint64_t bytes_ = 0;
  std::uint64_t mark_ = 0;
  std::uint64_t at_ = 0;
};

}  // namespace carnot
