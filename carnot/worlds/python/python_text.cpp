#include "carnot/worlds/python/python_text.h"

#include <utf8proc.h>

#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2, kDottedCapitalI = 0x130;

bool is_cased(char32_t code) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

/// The only letter whose lower case depends on its place: at the end of a word it is another one.
bool ends_word(std::string_view text, std::size_t at, std::size_t length) {
  if (at == 0 || !is_cased(first_character(text.substr(last_character_begin(text.substr(0, at)))).code_point))
    return false;
  const std::string_view after = text.substr(at + length);
  return after.empty() || !is_cased(first_character(after).code_point);
}

}  // namespace

std::string python_lower(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const char byte = text[at];
    if (static_cast<unsigned char>(byte) < 0x80) {
      lower += byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
      ++at;
      continue;
    }
    const Utf8Character character = first_character(text.substr(at));
    const auto length = static_cast<std::size_t>(character.length);
    if (!character.valid) {
      lower += byte;
    } else if (character.code_point == kCapitalSigma && ends_word(text, at, length)) {
      append_utf8(lower, kFinalSigma);
    } else if (character.code_point == kDottedCapitalI) {
      lower += "i\u0307";
    } else {
      append_utf8(lower, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character.code_point))));
    }
    at += length;
  }
  return lower;
}

}  // namespace carnot
