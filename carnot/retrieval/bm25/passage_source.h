// retrieval/bm25/passage_source.h -- the passages' file: its lines, from any of its bytes on, and what a line says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <istream>
#include <memory>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// A passage in the words of Search-R1's corpora: `contents` is the title in quotes, a line break and the text.
struct PassageRow {
  std::string id{};
  std::string contents{};
};

/// Reads a JSON object with `contents` (or `text`, `content`, `passage`, with a `title` or without) and maybe an `id`,
/// a string or an integer; without one, `number` is the id. Contents are served as they are; a title next to another
/// key is put before the text, in quotes and on its own line. The error begins with `where`.
Result<PassageRow> parse_passage_row(std::string_view line, std::uint64_t number, const std::string& where);

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
