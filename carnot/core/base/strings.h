// base/strings.h -- joins lists of words, and trims blanks.
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

}  // namespace carnot
