#include "carnot/core/base/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

constexpr Utf8Character kInvalid{.code_point = 0xFFFD, .length = 1, .valid = false};

/// Bytes of the character that begins with `lead`; 0 if none does.
constexpr int length_by_lead(std::uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

/// The second byte excludes overlong forms, surrogates and code points above U+10FFFF.
constexpr bool second_byte_fits(std::uint8_t lead, std::uint8_t second) {
  if (!continues_character(second)) return false;
  switch (lead) {
    case 0xE0: return second >= 0xA0;
    case 0xED: return second <= 0x9F;
    case 0xF0: return second >= 0x90;
    case 0xF4: return second <= 0x8F;
    default: return true;
  }
}

/// Length of the ASCII prefix, checked eight bytes at a time.
std::size_t ascii_prefix(std::string_view text) {
  std::size_t i = 0;
  for (std::uint64_t block; i + sizeof block <= text.size(); i += sizeof block) {
    std::memcpy(&block, text.data() + i, sizeof block);
    if (block & 0x8080808080808080u) break;
  }
  while (i < text.size() && static_cast<std::uint8_t>(text[i]) < 0x80) ++i;
  return i;
}

/// Blocks in which every character is a starter that neither decomposes nor composes with what precedes it.
struct Range {
  char32_t first;
  char32_t last;
};
constexpr Range kInert[] = {
    {0x0000, 0x02FF},    // Latin, with its composed letters
    {0x0400, 0x0482},    // Cyrillic
    {0x048A, 0x052F},    // more Cyrillic
    {0x2010, 0x2025},    // dashes, quotation marks
    {0x20A0, 0x20BF},    // currencies
    {0x2190, 0x21FF},    // arrows
    {0x2500, 0x27BF},    // boxes, symbols, dingbats
    {0x3000, 0x3029},    // ideographic punctuation
    {0x3041, 0x3096},    // Hiragana
    {0x30A1, 0x30FF},    // Katakana
    {0x4E00, 0x9FFF},    // ideographs
    {0xAC00, 0xD7A3},    // Hangul syllables
    {0xFF01, 0xFF60},    // full-width forms
    {0x1F300, 0x1FAFF},  // emoji
};

bool is_inert(char32_t code_point) {
  const auto* range = std::upper_bound(std::begin(kInert), std::end(kInert), code_point,
                                       [](char32_t value, const Range& candidate) { return value < candidate.first; });
  return range != std::begin(kInert) && code_point <= std::prev(range)->last;
}

}  // namespace

Utf8Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const int length = length_by_lead(byte(0));
  if (length == 1) return {.code_point = byte(0), .length = 1, .valid = true};
  if (length == 0 || text.size() < static_cast<std::size_t>(length) || !second_byte_fits(byte(0), byte(1)))
    return kInvalid;
  char32_t code_point = byte(0) & (0x7Fu >> length);
  for (std::size_t i = 1; i < static_cast<std::size_t>(length); ++i) {
    if (!continues_character(byte(i))) return kInvalid;
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
  }
  return {.code_point = code_point, .length = length, .valid = true};
}

std::size_t count_characters(std::string_view text) {
  return text.size() - std::count_if(text.begin(), text.end(), continues_character);
}

std::size_t last_character_begin(std::string_view text) {
  for (std::size_t length = std::min<std::size_t>(4, text.size()); length > 1; --length) {
    const Utf8Character character = first_character(text.substr(text.size() - length));
    if (character.valid && static_cast<std::size_t>(character.length) == length) return text.size() - length;
  }
  return text.size() - 1;
}

void append_utf8(std::string& text, char32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  text.append(reinterpret_cast<const char*>(bytes), length);
}

std::size_t valid_prefix(std::string_view text) {
  std::size_t i = 0;
  while (true) {
    i += ascii_prefix(text.substr(i));
    if (i == text.size()) return i;
    const Utf8Character character = first_character(text.substr(i));
    if (!character.valid) return i;
    i += static_cast<std::size_t>(character.length);
  }
}

std::size_t unfinished_suffix(std::string_view text) {
  for (std::size_t have = 1; have <= std::min<std::size_t>(3, text.size()); ++have) {
    const std::string_view tail = text.substr(text.size() - have);
    const auto lead = static_cast<std::uint8_t>(tail[0]);
    if (continues_character(lead)) continue;
    const bool fits = have == 1 || second_byte_fits(lead, static_cast<std::uint8_t>(tail[1]));
    return fits && length_by_lead(lead) > static_cast<int>(have) ? have : 0;
  }
  return 0;
}

bool certainly_composed(std::string_view text) {
  while (true) {
    text.remove_prefix(ascii_prefix(text));
    if (text.empty()) return true;
    const Utf8Character character = first_character(text);
    if (!is_inert(character.code_point)) return false;
    text.remove_prefix(character.length);
  }
}

std::string compose(std::string_view text) {
  if (text.empty()) return {};
  utf8proc_uint8_t* composed = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &composed, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owned(composed, std::free);
  CARNOT_CHECK(length >= 0, utf8proc_errmsg(length));
  return {reinterpret_cast<const char*>(composed), static_cast<std::size_t>(length)};
}

std::string with_replacement_characters(std::string_view text) {
  std::string valid;
  while (true) {
    const std::size_t length = valid_prefix(text);
    valid += text.substr(0, length);
    text.remove_prefix(length);
    if (text.empty()) return valid;
    valid += "\uFFFD";
    std::size_t broken = std::min<std::size_t>(3, text.size());
    while (broken > 1 && unfinished_suffix(text.substr(0, broken)) != broken) --broken;
    text.remove_prefix(broken);
  }
}

bool is_white_space(char32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return true;
    default: return (code_point >= 0x09 && code_point <= 0x0D) || code_point == 0x85;
  }
}

namespace {

/// Circled, squared and negative letters: the symbols that count as alphabetic (Other_Alphabetic).
bool is_letter_in_a_shape(char32_t code_point) {
  return (code_point >= 0x24B6 && code_point <= 0x24E9) || (code_point >= 0x1F130 && code_point <= 0x1F149) ||
         (code_point >= 0x1F150 && code_point <= 0x1F169) || (code_point >= 0x1F170 && code_point <= 0x1F189);
}

}  // namespace

bool is_word_character(char32_t code_point) {
  if (code_point == 0x200C || code_point == 0x200D) return true;  // zero-width joiners
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    case UTF8PROC_CATEGORY_SO: return is_letter_in_a_shape(code_point);
    default: return false;
  }
}

namespace {

/// Python counts the four separators of ASCII as blanks too.
bool is_python_space(char32_t code_point) {
  return is_white_space(code_point) || (code_point >= 0x1C && code_point <= 0x1F);
}

}  // namespace

std::string_view right_stripped(std::string_view text) {
  while (!text.empty()) {
    const std::size_t last = last_character_begin(text);
    if (!is_python_space(first_character(text.substr(last)).code_point)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string_view stripped(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character first = first_character(text);
    if (!is_python_space(first.code_point)) break;
    text.remove_prefix(first.length);
  }
  return right_stripped(text);
}

}  // namespace carnot
