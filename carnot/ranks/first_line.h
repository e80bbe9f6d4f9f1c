// ranks/first_line.h -- LibTorch puts a stack trace below the first line of a message.
#pragma once

#include <string>

namespace carnot {

inline std::string first_line(const std::string& message) { return message.substr(0, message.find('\n')); }

}  // namespace carnot
