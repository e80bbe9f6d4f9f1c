// base/file.h -- reads, maps and writes files; a reader never sees a half-written one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/result.h"

namespace carnot {

/// The whole file. The error names the path and the system's reason, or the limit (base/limits.h) that the file
/// exceeds. A pipe is read until its writers close it; a pipe without a writer is an error.
Result<std::string> read_file(const std::filesystem::path& path);

/// The whole file, decompressed if its name ends in .xz. The decompressed size is limited, too.
Result<std::string> read_maybe_compressed(const std::filesystem::path& path);

/// The decompressed content of an .xz file, at most `limit` bytes.
Result<std::string> expand_xz(std::string_view packed, const std::string& name, std::size_t limit);

/// The rest of the stream, at most `limit` bytes; `name` is for error messages.
Result<std::string> read_stream(std::istream& in, const std::string& name, std::size_t limit = kMaxStreamBytes);

/// The stream's next line, without its line break; false at the end of the stream. A line longer than `limit` is an
/// error.
Result<bool> read_line(std::istream& in, std::string& line, std::size_t limit = kMaxLineBytes);

/// Lines without their '\n'. Splits on that byte only; a last line without it counts.
std::vector<std::string_view> split_lines(std::string_view text);

/// Writes to a temporary file next to `path` (temporary_name.h), syncs it and renames it: `path` has either the old
/// content or all of the new, and keeps its permissions. A symbolic link is kept and its target replaced. Devices,
/// pipes and terminals cannot be replaced and are written to directly.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);
/// The same for content in several pieces.
Status write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> pieces);
/// The same for content that is made while it is written: `make` passes it on piece by piece, and returns the first
/// error, its own or one of `write`.
using PieceWriter = std::function<Status(std::string_view piece)>;
Status write_file_atomically(const std::filesystem::path& path,
                             const std::function<Status(const PieceWriter& write)>& make);

/// Syncs the file's content, or the folder's entries, to disk, so that they survive a power failure.
Status sync_path(const std::filesystem::path& path);

/// Creates the folder and its parents; the error has the reason.
Status make_folder(const std::filesystem::path& path);

/// Lower-case hexadecimal SHA-256.
std::string sha256_hex(std::string_view content);
/// SHA-256 of a file of any size, read in pieces.
Result<std::string> sha256_of_file(const std::filesystem::path& path);

/// Opens it for reading. A pipe, a device or a folder is refused; a pipe's writer is not waited for.
Result<Descriptor> open_regular_file(const std::filesystem::path& path);

/// A memory-mapped file: pages are loaded when they are accessed. The mapping is private: writes do not reach the disk.
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

/// The error of a failed system call: "path: what: reason", where the reason is the current errno.
Error system_error(const std::filesystem::path& path, const std::string& what);

}  // namespace carnot
