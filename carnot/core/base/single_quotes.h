// base/single_quotes.h -- quotes a string as one word for a POSIX shell.
#pragma once

#include <string>
#include <string_view>

namespace carnot {

inline std::string in_single_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace carnot
