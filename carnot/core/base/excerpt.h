// base/excerpt.h -- part of a text that is too long to show.
#pragma once

#include <string>
#include <string_view>

#include "carnot/core/base/utf8.h"

namespace carnot {

/// The last `bytes` bytes of `text`, without a character that would be cut, after "..."; the whole text if it is not
/// longer.
inline std::string end_of(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  std::size_t begin = text.size() - bytes;
  while (begin < text.size() && continues_character(text[begin])) ++begin;
  return "..." + std::string(text.substr(begin));
}

}  // namespace carnot
