#include "carnot/core/base/utf8.h"

#include <gtest/gtest.h>

#include "carnot/core/text/byte_alphabet.h"
#include "testing/random_text.h"

namespace carnot {
namespace {

std::string utf8(char32_t code_point) {
  std::string text;
  append_utf8(text, code_point);
  return text;
}

TEST(Utf8, EveryCodePointRoundTripsAndSurrogatesAreRefused) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const std::string text = utf8(c);
    const Utf8Character character = first_character(text);
    ASSERT_TRUE(character.valid) << static_cast<std::uint32_t>(c);
    ASSERT_TRUE(character.code_point == c) << static_cast<std::uint32_t>(c);
    ASSERT_EQ(static_cast<std::size_t>(character.length), text.size());
  }
  for (const char* bad : {"\xED\xA0\x80", "\xC0\x80", "\xE0\x80\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\x80",
                          "\xFF", "\xE4\xBD", "\xF5\x80\x80\x80"})
    EXPECT_FALSE(first_character(bad).valid) << bytes_to_symbols(bad);
}

TEST(Utf8, TheValidPrefixEndsAtTheFirstBadByte) {
  EXPECT_EQ(valid_prefix("abcdefghi"), 9u);
  EXPECT_EQ(valid_prefix("caf\xC3\xA9 and \xFF more"), 10u);
  EXPECT_EQ(valid_prefix("abcdefgh\xC3"), 8u);
}

TEST(Utf8, OnlyACharacterThatMoreBytesCanCompleteIsUnfinished) {
  EXPECT_EQ(unfinished_suffix("a"), 0u);
  EXPECT_EQ(unfinished_suffix("a\xC3"), 1u);
  EXPECT_EQ(unfinished_suffix("a\xC3\xA9"), 0u);
  EXPECT_EQ(unfinished_suffix("\xF0\x9F\xA6"), 3u);
  EXPECT_EQ(unfinished_suffix("\xED\xA0"), 0u) << "a surrogate stays wrong whatever follows";
  EXPECT_EQ(unfinished_suffix("\x80\x80"), 0u);
  EXPECT_EQ(unfinished_suffix("\xFF"), 0u);
}

TEST(Utf8, TheLastCharacterIsFoundFromTheEnd) {
  EXPECT_EQ(last_character_begin("ab"), 1u);
  EXPECT_EQ(last_character_begin("a\xF0\x9F\xA6\x99"), 1u);
  EXPECT_EQ(last_character_begin("a\xA9"), 1u);
}

TEST(Utf8, ReplacesEachInvalidStretchByOneMark) {
  EXPECT_EQ(with_replacement_characters("caf\xC3\xA9"), "caf\u00E9");
  EXPECT_EQ(with_replacement_characters("caf\xE9"), "caf\uFFFD");
  EXPECT_EQ(with_replacement_characters("\xE4\xBD"
                                        "a\xF0\x9F\xA6"),
            "\uFFFDa\uFFFD");
  EXPECT_EQ(with_replacement_characters("\xED\xA0\x80\xA9"), "\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(Utf8, CountsJoinersAndCircledLettersAsWordCharacters) {
  for (const char32_t c : {U'a', U'_', U'\u00E9', U'\u0301', U'\u0663', U'\u200D', U'\u24B6'})
    EXPECT_TRUE(is_word_character(c)) << static_cast<std::uint32_t>(c);
  for (const char32_t c : {U' ', U'-', U'\u00B2', U'\u2581', U'\u2122'})
    EXPECT_FALSE(is_word_character(c)) << static_cast<std::uint32_t>(c);
}

TEST(Composition, WhatTheQuickCheckCallsComposedIsUnchanged) {
  RandomStream random(1);
  std::string before = "a";
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const std::string text = utf8(c);
    if (!certainly_composed(text)) continue;
    ASSERT_EQ(compose(before + text), before + text) << std::hex << static_cast<std::uint32_t>(c);
    if (random.chance(0.1)) before = text;
  }
}

TEST(Composition, JoinsMarksAndIsIdempotent) {
  EXPECT_EQ(compose("cafe\xCC\x81"), "caf\xC3\xA9");
  EXPECT_FALSE(certainly_composed("cafe\xCC\x81"));
  RandomStream random(2);
  for (int trial = 0; trial < 500; ++trial) {
    const std::string once = compose(testing::random_unicode(random, 12));
    EXPECT_EQ(compose(once), once);
  }
}

TEST(ByteAlphabet, IsGpt2sAndRoundTrips) {
  EXPECT_EQ(bytes_to_symbols(" a\n"), "ĠaĊ");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    EXPECT_EQ(symbols_to_bytes(bytes_to_symbols(bytes)), bytes);
  }
  EXPECT_FALSE(symbols_to_bytes(" ").has_value());
  EXPECT_FALSE(symbols_to_bytes("▁").has_value());
  EXPECT_FALSE(symbols_to_bytes("\xC4").has_value());
}

}  // namespace
}  // namespace carnot
