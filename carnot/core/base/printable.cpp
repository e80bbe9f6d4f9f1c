#include "carnot/core/base/printable.h"

#include <algorithm>

#include "carnot/core/base/file.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

std::string hexadecimal(char c) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return std::string("\\x") + kDigits[byte >> 4] + kDigits[byte & 15];
}

/// Bytes of the UTF-8 character at the front; 0 if there is no valid one.
std::size_t character_length(std::string_view text) {
  const Utf8Character first = first_character(text);
  return first.valid ? first.length : 0;
}

/// Control characters of ASCII, and those of C1, which are two bytes: 0xc2 0x80 to 0xc2 0x9f.
bool is_control(std::string_view character) {
  if (character.size() == 1) return static_cast<unsigned char>(character[0]) < 0x20 || character[0] == 0x7f;
  return character.size() == 2 && character[0] == '\xc2' && static_cast<unsigned char>(character[1]) < 0xa0;
}

/// At most kMessageLineBytes of the line, cut between characters.
std::string_view beginning(std::string_view line) {
  if (line.size() <= kMessageLineBytes) return line;
  std::size_t end = kMessageLineBytes;
  while (end > kMessageLineBytes - 4 && continues_character(line[end])) --end;
  return line.substr(0, end);
}

std::string message_line(std::string_view line) {
  const std::string_view shown = beginning(line);
  const std::size_t left_out = line.size() - shown.size();
  return printable_line(shown) + (left_out == 0 ? "" : "... (" + std::to_string(left_out) + " more bytes)");
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const bool kept = character == "\n" || character == "\t" || (length > 0 && !is_control(character));
    if (kept) {
      out += character;
    } else {
      for (const char c : character) out += hexadecimal(c);
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string printable_line(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\n' || c == '\t')
      out += c == '\n' ? "\\n" : "\\t";
    else
      out += c;
  }
  return out;
}

std::string printable_message(std::string_view message) {
  const auto lines = split_lines(message);
  std::string out;
  for (std::size_t i = 0; i < std::min(lines.size(), kMessageLines); ++i)
    out += (i == 0 ? "" : "\n") + message_line(lines[i]);
  if (lines.size() > kMessageLines) out += "\n... (" + std::to_string(lines.size() - kMessageLines) + " more lines)";
  return out;
}

}  // namespace carnot
