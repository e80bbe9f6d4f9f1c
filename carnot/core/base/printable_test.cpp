#include "carnot/core/base/printable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/log.h"

namespace carnot {
namespace {

using ::testing::EndsWith;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Printable, KeepsTextAndLineBreaksAndDisarmsEscapes) {
  EXPECT_EQ(printable("größe\t日本\n🙂"), "größe\t日本\n🙂");
  EXPECT_EQ(printable("\x1b[2Jgone\r\x7f"), "\\x1b[2Jgone\\x0d\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b"
            "2J");  // the control sequence introducer of C1
}

TEST(Printable, WritesInvalidBytesAsNumbers) {
  EXPECT_EQ(printable("a\xe6\x97"), "a\\xe6\\x97");
  EXPECT_EQ(printable("\xff\xc0\x80"), "\\xff\\xc0\\x80");
  EXPECT_EQ(printable("\xe6z"), "\\xe6z");
}

TEST(Printable, PutsALineOnOneLine) { EXPECT_EQ(printable_line("a\n\tb\r"), "a\\n\\tb\\x0d"); }

TEST(PrintableMessage, KeepsItsLinesAndDisarmsEachOfThem) {
  EXPECT_EQ(printable_message("a: wrong\nb\x1b]0;title\x07: too"), "a: wrong\nb\\x1b]0;title\\x07: too");
  EXPECT_EQ(printable_message(""), "");
}

TEST(PrintableMessage, CutsALongLineBetweenCharactersAndSaysHowMuchIsLeftOut) {
  const std::string before(kMessageLineBytes - 1, 'x');
  EXPECT_EQ(printable_message(before + "y"), before + "y");
  EXPECT_EQ(printable_message(before + "日本"), before + "... (6 more bytes)");
  EXPECT_LT(printable_message(std::string(50'000'000, '\x1b')).size(), 5 * kMessageLineBytes);
}

TEST(PrintableMessage, CutsAMessageOfVeryManyLines) {
  std::string many;
  for (std::size_t i = 0; i < kMessageLines + 7; ++i) many += "line\n";
  EXPECT_THAT(printable_message(many), EndsWith("\nline\n... (7 more lines)"));
}

TEST(Log, ShowsNoControlByteOfAMessage) {
  std::string shown;
  const LogSink before = set_log_sink([&shown](LogLevel, const std::string& message) { shown = message; });
  log_warning("file \x1b[2J.json: " + std::string(1'000'000, 'x'));
  set_log_sink(before);
  EXPECT_THAT(shown, StartsWith("file \\x1b[2J.json: xxx"));
  EXPECT_LT(shown.size(), 3000u);
  EXPECT_THAT(shown, Not(EndsWith("x")));
}

}  // namespace
}  // namespace carnot
