// base/file.h -- whole files in and out; a reader never meets a half-written one.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/base/result.h"

namespace carnot {

/// The whole file; the error names the path and the system's reason, or the limit (base/limits.h) that it exceeds. Of a
/// pipe, what is written into it until its writers close it; one without a writer is an error.
Result<std::string> read_file(const std::filesystem::path& path);

/// The whole file, decompressed where the name ends in .xz. What it expands to has a limit, too.
Result<std::string> read_maybe_compressed(const std::filesystem::path& path);

/// The rest of the stream, within the limits for inputs of unknown size; `name` is for the message.
Result<std::string> read_stream(std::istream& in, const std::string& name);

/// The stream's next line, without its end; false if there is none. An error where the line is too long.
Result<bool> read_line(std::istream& in, std::string& line);

/// Lines without their '\n'. Splits on that byte alone; a last line without it counts.
std::vector<std::string_view> split_lines(std::string_view text);

/// Writes under another name next to `path` (temporary_name.h), syncs, renames: `path` holds the old content or all
/// of the new, and keeps its permissions. A symbolic link stays, and what it leads to is replaced. A device, a pipe
/// or a terminal cannot be replaced: it is written into.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content);
/// The same for content in several pieces.
Status write_file_atomically(const std::filesystem::path& path, std::span<const std::string_view> pieces);

/// Makes the bytes of the file, or the entries of the folder, survive a power cut.
Status sync_path(const std::filesystem::path& path);

/// Creates the folder and its parents; says why where it cannot.
Status make_folder(const std::filesystem::path& path);

/// Lower-case hexadecimal SHA-256.
std::string sha256_hex(std::string_view content);
/// Reads the file piece by piece, however large it is.
Result<std::string> sha256_of_file(const std::filesystem::path& path);

}  // namespace carnot
