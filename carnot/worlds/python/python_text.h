// worlds/python/python_text.h -- texts as Python changes them.
#pragma once

#include <string>
#include <string_view>

namespace carnot {

/// str.lower. Bytes that are no UTF-8 stay.
std::string python_lower(std::string_view text);

}  // namespace carnot
