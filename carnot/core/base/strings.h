// base/strings.h -- small functions on strings: joining, trimming, quoting, classes of ASCII characters.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace carnot {

/// "a, b, c".
std::string join(std::span<const std::string> words, std::string_view between = ", ");

/// Without ASCII white space at both ends. For the rules of Python's str.strip, use stripped() (base/utf8.h).
std::string_view trim(std::string_view text);

/// ASCII letters in lower case; other bytes are unchanged.
std::string lower_case(std::string_view text);

/// ASCII only, whatever the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Quoted as one word for a POSIX shell.
inline std::string in_single_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace carnot
