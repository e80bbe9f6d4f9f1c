#include "carnot/core/base/strings.h"

#include <gtest/gtest.h>

#include <vector>

namespace carnot {
namespace {

TEST(Strings, JoinsWordsWithASeparator) {
  EXPECT_EQ(join(std::vector<std::string>{}), "");
  EXPECT_EQ(join(std::vector<std::string>{"", "a", ""}), ", a, ");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}, " + "), "a + b");
}

TEST(Strings, TrimsBlanksAtBothEndsOnly) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n\t"), "");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim("\u00a0a"), "\u00a0a");
}

TEST(Strings, LowersAsciiLettersOnly) { EXPECT_EQ(lower_case("AZ[az\u00c4"), "az[az\u00c4"); }

}  // namespace
}  // namespace carnot
