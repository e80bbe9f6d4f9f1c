#include "carnot/core/cli/terminal_text.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

TEST(TerminalText, AlignsColumnsByCharactersAndEndsLinesWithoutBlanks) {
  EXPECT_EQ(text_table({{"ä", "b"}, {"long", "", "c"}, {"x", ""}}), "ä     b\nlong     c\nx\n");
  EXPECT_EQ(text_table({}), "");
}

}  // namespace
}  // namespace carnot
