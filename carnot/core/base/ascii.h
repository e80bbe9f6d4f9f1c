// base/ascii.h -- classes of ASCII characters, independent of the locale.
#pragma once

namespace carnot {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace carnot
