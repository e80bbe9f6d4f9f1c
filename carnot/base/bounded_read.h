// base/bounded_read.h -- the parts of base/file.h that read, with their limits as arguments.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>

#include "carnot/base/result.h"

namespace carnot {

/// The rest of the stream, at most `limit` bytes; `name` is for the message.
Result<std::string> read_stream(std::istream& in, const std::string& name, std::size_t limit);

/// The stream's next line, without its end; false if there is none. An error where it is longer than `limit`.
Result<bool> read_line(std::istream& in, std::string& line, std::size_t limit);

/// What an .xz file expands to, at most `limit` bytes.
Result<std::string> expand_xz(std::string_view packed, const std::string& name, std::size_t limit);

}  // namespace carnot
