// base/bounded_read.h -- the reading functions of base/file.h, with their limits as arguments.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// The rest of the stream, at most `limit` bytes; `name` is for error messages.
Result<std::string> read_stream(std::istream& in, const std::string& name, std::size_t limit);

/// The stream's next line, without its line break; false at the end of the stream. A line longer than `limit` is an
/// error.
Result<bool> read_line(std::istream& in, std::string& line, std::size_t limit);

/// The decompressed content of an .xz file, at most `limit` bytes.
Result<std::string> expand_xz(std::string_view packed, const std::string& name, std::size_t limit);

}  // namespace carnot
