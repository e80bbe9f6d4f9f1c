// base/strings.h -- lists of words as text, and text without blanks around it.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace carnot {

/// "a, b, c".
std::string join(std::span<const std::string> words, std::string_view between = ", ");

/// Without ASCII white space at both ends. What Python's str.strip leaves: stripped (base/utf8.h).
std::string_view trim(std::string_view text);

/// ASCII letters in lower case; other bytes stay.
std::string lower_case(std::string_view text);

}  // namespace carnot
