#include "carnot/cli/terminal_text.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

TEST(TerminalText, KeepsTextAndLineBreaksAndDisarmsEscapes) {
  EXPECT_EQ(printable("größe\t日本\n🙂"), "größe\t日本\n🙂");
  EXPECT_EQ(printable("\x1b[2Jgone\r\x7f"), "\\x1b[2Jgone\\x0d\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b"
            "2J");  // the control sequence introducer of C1
}

TEST(TerminalText, WritesBytesThatAreNoCharacterAsNumbers) {
  EXPECT_EQ(printable("a\xe6\x97"), "a\\xe6\\x97");
  EXPECT_EQ(printable("\xff\xc0\x80"), "\\xff\\xc0\\x80");
  EXPECT_EQ(printable("\xe6z"), "\\xe6z");
}

TEST(TerminalText, PutsALineOnOneLine) { EXPECT_EQ(printable_line("a\n\tb\r"), "a\\n\\tb\\x0d"); }

TEST(TerminalText, AlignsColumnsByCharactersAndEndsLinesWithoutBlanks) {
  EXPECT_EQ(text_table({{"ä", "b"}, {"long", "", "c"}, {"x", ""}}), "ä     b\nlong     c\nx\n");
  EXPECT_EQ(text_table({}), "");
}

}  // namespace
}  // namespace carnot
