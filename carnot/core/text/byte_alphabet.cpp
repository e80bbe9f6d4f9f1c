#include "carnot/core/text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr std::array<char32_t, 256> make_alphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const auto index = static_cast<std::size_t>(byte);
    alphabet[index] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
  }
  return alphabet;
}

constexpr std::array<char32_t, 256> kAlphabet = make_alphabet();
constexpr char32_t kAlphabetEnd = 0x144;

/// Byte of each code point below kAlphabetEnd, or -1.
constexpr std::array<int, kAlphabetEnd> make_inverse() {
  std::array<int, kAlphabetEnd> inverse{};
  for (int& byte : inverse) byte = -1;
  for (std::size_t byte = 0; byte < 256; ++byte) inverse[kAlphabet[byte]] = static_cast<int>(byte);
  return inverse;
}

constexpr std::array<int, kAlphabetEnd> kInverse = make_inverse();

}  // namespace

std::string bytes_to_symbols(std::string_view bytes) {
  std::string symbols;
  for (const char byte : bytes) append_utf8(symbols, kAlphabet[static_cast<std::uint8_t>(byte)]);
  return symbols;
}

std::optional<std::string> symbols_to_bytes(std::string_view symbols) {
  std::string bytes;
  while (!symbols.empty()) {
    const Utf8Character character = first_character(symbols);
    if (!character.valid || character.code_point >= kAlphabetEnd || kInverse[character.code_point] < 0) return {};
    bytes += static_cast<char>(kInverse[character.code_point]);
    symbols.remove_prefix(character.length);
  }
  return bytes;
}

}  // namespace carnot
