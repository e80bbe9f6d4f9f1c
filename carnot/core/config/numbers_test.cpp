#include "carnot/core/config/numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

TEST(Numbers, AreReadAsRecipesWriteThem) {
  EXPECT_EQ(parse_number("1e-6"), 1e-6);
  EXPECT_EQ(parse_number("+.5"), 0.5);
  EXPECT_EQ(parse_number("-3"), -3.0);
  EXPECT_EQ(parse_number("-.inf"), -std::numeric_limits<double>::infinity());
}

TEST(Numbers, RefuseWordsAndTrailingText) {
  for (const char* text : {"", "abc", "1x", "0x10", "nan", ".nan", "inf", "1 2", "+-1", "1e999"})
    EXPECT_FALSE(parse_number(text)) << text;
}

TEST(Numbers, AreWrittenSoThatTheSameBitsComeBack) {
  RandomStream random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const double value = std::bit_cast<double>(random.bits());
    if (std::isnan(value)) continue;
    EXPECT_EQ(parse_number(write_number(value)), value) << write_number(value);
  }
}

TEST(Integers, AcceptIntegerExponentsOnly) {
  EXPECT_EQ(parse_whole_number("1e4"), 10000);
  EXPECT_EQ(parse_whole_number("9223372036854775807"), INT64_MAX);
  for (const char* text : {"1.5", "1e-1", "9223372036854775808", "1e300", ".inf", "true", ""})
    EXPECT_FALSE(parse_whole_number(text)) << text;
}

TEST(Bools, AcceptYamlsWordsOnly) {
  EXPECT_EQ(parse_switch("yes"), true);
  EXPECT_EQ(parse_switch("off"), false);
  EXPECT_FALSE(parse_switch("1"));
  EXPECT_FALSE(parse_switch("TRUE!"));
}

}  // namespace
}  // namespace carnot
