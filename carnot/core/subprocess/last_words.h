// subprocess/last_words.h -- how much of what a program wrote a message repeats.
#pragma once

#include <cstddef>

namespace carnot {

inline constexpr std::size_t kLastWords = 5;  ///< lines

}  // namespace carnot
