#include "carnot/core/text/split_pattern.h"

#include <gtest/gtest.h>

#include <vector>

#include "testing/random_text.h"

namespace carnot {
namespace {

std::vector<std::string> pieces(const SplitPattern& pattern, std::string_view text) {
  std::vector<std::string> found;
  SplitScratch scratch;
  const Status status =
      pattern.for_each_piece(text, scratch, [&](std::string_view piece) { found.emplace_back(piece); });
  EXPECT_TRUE(status.ok());
  return found;
}

using Pieces = std::vector<std::string>;

TEST(SplitPattern, Qwen2TakesOneCharacterBeforeAWordAndSingleDigits) {
  const auto pattern = SplitPattern::compile(kQwen2Pattern).value();
  EXPECT_EQ(pieces(pattern, "It's <think>12 \n\n  go"),
            (Pieces{"It", "'s", " <", "think", ">", "1", "2", " \n\n", " ", " go"}));
}

TEST(SplitPattern, Gpt2KeepsDigitsTogether) {
  const auto pattern = SplitPattern::compile(kGpt2Pattern).value();
  EXPECT_EQ(pieces(pattern, "a 123  b"), (Pieces{"a", " 123", " ", " b"}));
}

TEST(SplitPattern, PiecesAreTheWholeTextWhateverThePattern) {
  RandomStream random(3);
  for (const std::string_view source :
       {kQwen2Pattern, kGpt2Pattern, std::string_view("b+"), std::string_view("\\d|")}) {
    const auto pattern = SplitPattern::compile(source).value();
    for (int trial = 0; trial < 200; ++trial) {
      const std::string text = testing::random_unicode(random, 30);
      std::string joined;
      for (const std::string& piece : pieces(pattern, text)) joined += piece;
      EXPECT_EQ(joined, text);
    }
  }
}

TEST(SplitPattern, ALiteralIsNoExpression) {
  EXPECT_EQ(pieces(SplitPattern::literal("a.").value(), "xa.ya"), (Pieces{"x", "a.", "ya"}));
}

TEST(SplitPattern, TheMongolianVowelSeparatorIsNoBlank) {
  EXPECT_EQ(pieces(SplitPattern::compile("\\s+").value(), " \u180E\u00A0"), (Pieces{" ", "\u180E", "\u00A0"}));
  EXPECT_EQ(pieces(SplitPattern::compile("[^\\s]+").value(), "a\u180E b"), (Pieces{"a\u180E", " ", "b"}));
}

TEST(SplitPattern, LongRunsOfOneKindAreFine) {
  const auto pattern = SplitPattern::compile(kQwen2Pattern).value();
  EXPECT_EQ(pieces(pattern, std::string(100000, ' ') + "x").size(), 2u);
  EXPECT_EQ(pieces(pattern, std::string(100000, 'x')).size(), 1u);
}

TEST(SplitPattern, BacktrackingWithoutEndIsAnErrorAndNotATextWithoutMatches) {
  SplitScratch scratch;
  std::vector<std::string> found;
  const auto visit = [&](std::string_view piece) { found.emplace_back(piece); };
  const std::string text = "b" + std::string(60, 'a') + "c";
  for (const char* pattern : {"b|(a+)+$", "b|(?:(a|aa)+)+$"}) {
    found.clear();
    const auto status = SplitPattern::compile(pattern).value().for_each_piece(text, scratch, visit);
    ASSERT_FALSE(status.ok()) << pattern;
    EXPECT_EQ(status.error().message,
              "the split pattern takes more than 10000000 steps at byte 1 of a text of 62 bytes");
    EXPECT_EQ(found, Pieces{"b"});
  }
}

TEST(SplitPattern, PatternsThatNestTooDeepOrAreTooLongAreRefused) {
  EXPECT_FALSE(SplitPattern::compile(std::string(100'000, '(') + "a" + std::string(100'000, ')')).ok());
  EXPECT_FALSE(SplitPattern::compile(std::string(1'000, '(') + "a" + std::string(1'000, ')')).ok());
  const auto longest = SplitPattern::compile(std::string(1 << 20, 'a'));
  ASSERT_FALSE(longest.ok());
  EXPECT_LT(longest.error().message.size(), 600u);
}

TEST(SplitPattern, WhatPcre2WouldReadOtherwiseIsRefusedWithItsPlace) {
  const auto message = [](std::string_view pattern) {
    const auto compiled = SplitPattern::compile(pattern);
    return compiled.ok() ? std::string("accepted") : compiled.error().message;
  };
  EXPECT_NE(message("[a[bc]]").find("byte 2: a class within a class"), std::string::npos);
  EXPECT_NE(message("[a-z&&b]").find("intersection"), std::string::npos);
  EXPECT_NE(message("\\h+").find("\\h"), std::string::npos);
  EXPECT_NE(message("[\\S]").find("\\S within a class"), std::string::npos);
  EXPECT_NE(message("(a").find("byte 2"), std::string::npos);
  EXPECT_EQ(message("[[:alpha:]\\]]\\s"), "accepted");
}

}  // namespace
}  // namespace carnot
