// base/utf8.h -- UTF-8 characters, validity and composition (NFC).
#pragma once

#include <string>
#include <string_view>

namespace carnot {

struct Utf8Character {
  char32_t code_point = 0;
  int length = 0;  ///< bytes; 1 for an invalid byte
  bool valid = false;
};

/// The first character of `text` by RFC 3629 (shortest form, no surrogates). REQUIRES: not empty.
Utf8Character first_character(std::string_view text);

/// True for the second, third and fourth byte of a character.
constexpr bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// The number of characters in `text`. For invalid UTF-8: of bytes that do not continue a character.
std::size_t count_characters(std::string_view text);

/// Where the last character of `text` begins; invalid bytes count as characters. REQUIRES: not empty.
std::size_t last_character_begin(std::string_view text);

void append_utf8(std::string& text, char32_t code_point);

/// Length of the longest prefix that is valid UTF-8.
std::size_t valid_prefix(std::string_view text);

/// Length of the incomplete character at the end: up to three bytes that further bytes could complete.
std::size_t unfinished_suffix(std::string_view text);

/// True if a quick check proves that NFC leaves `text` unchanged; false proves nothing.
/// REQUIRES: valid UTF-8.
bool certainly_composed(std::string_view text);

/// Unicode normalization form C. REQUIRES: valid UTF-8.
std::string compose(std::string_view text);

/// `text` with one U+FFFD for each run of bytes that begins no character or ends within one (Unicode's recommended
/// practice, section 3.9).
std::string with_replacement_characters(std::string_view text);

/// Unicode White_Space, and a word character as in regular expressions (\w; UTS #18, annex C).
bool is_white_space(char32_t code_point);
bool is_word_character(char32_t code_point);

/// Without blanks at both ends or at the right end, as Python's str.strip and str.rstrip.
std::string_view stripped(std::string_view text);
std::string_view right_stripped(std::string_view text);

}  // namespace carnot
