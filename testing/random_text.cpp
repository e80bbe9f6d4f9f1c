#include "testing/random_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace carnot::testing {
namespace {

struct Block {
  char32_t first;
  char32_t last;
};
constexpr std::array<Block, 14> kBlocks = {{{' ', '~'},
                                            {'a', 'z'},
                                            {'0', '9'},
                                            {'\t', '\r'},
                                            {0x80, 0x24F},
                                            {0x300, 0x345},      // combining marks
                                            {0x370, 0x4FF},      // Greek, Cyrillic
                                            {0x900, 0xDFF},      // Indic
                                            {0x1100, 0x11FF},    // Hangul parts
                                            {0xAC00, 0xAC80},    // Hangul syllables
                                            {0x2000, 0x2130},    // blanks, letter-like symbols
                                            {0x4E00, 0x4F00},    // ideographs
                                            {0x1F300, 0x1F64F},  // emoji
                                            {0x0, 0x10FFFF}}};

constexpr std::string_view kJson = "{}[]\",:0129-nt\\";

void append_character(std::string& text, char32_t c) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0 | c >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

std::string random_unicode(RandomStream& random, int length) {
  std::string text;
  const Block favourite = random.pick(kBlocks);
  for (int i = 0; i < length; ++i) {
    const Block block = random.chance(0.5) ? favourite : random.pick(kBlocks);
    const auto c = static_cast<char32_t>(block.first + random.below(block.last - block.first + 1));
    append_character(text, c >= 0xD800 && c <= 0xDFFF ? U'?' : c);
  }
  return text;
}

std::string random_bytes(RandomStream& random, int length) {
  std::string bytes;
  for (int i = 0; i < length; ++i) bytes += static_cast<char>(random.below(256));
  return bytes;
}

std::string mutated(RandomStream& random, std::string text) {
  const auto edits = 1 + random.below(3);
  for (std::uint64_t i = 0; i < edits && !text.empty(); ++i) {
    const std::size_t at = random.below(text.size());
    const std::size_t length = std::min<std::size_t>(1 + random.below(12), text.size() - at);
    switch (random.below(6)) {
      case 0: text[at] = static_cast<char>(random.below(256)); break;
      case 1: text[at] = kJson[random.below(kJson.size())]; break;
      case 2: text.erase(at, length); break;
      case 3: text.insert(at, text.substr(at, length)); break;
      case 4: text.insert(at, text.substr(random.below(text.size()), length)); break;
      default:
        if (random.chance(0.2)) text.resize(at);
    }
  }
  return text;
}

}  // namespace carnot::testing
