#include "carnot/core/cli/usage.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

TEST(UsageText, BreaksLinesAtTheWidthOfATerminalAndListsWords) {
  const std::string first = "one two three four five six seven eight nine ten eleven twelve", rest = "and thirteen";
  const CommandUsage usage{
      .name = "paint",
      .arguments = "WALL",
      .summary = "a wall in a colour",
      .example = "carnot paint north --colour red",
      .options = {{.name = "WALL", .help = "which one", .operand = true, .required = true},
                  {.name = "--colour", .argument = "C", .help = "of the paint", .words = {"red", "blue"}},
                  {.name = "--note", .argument = "TEXT", .help = first + " " + rest}}};
  EXPECT_EQ(usage_text(usage),
            "carnot paint WALL\n\na wall in a colour\n\n"
            "  WALL                            which one\n"
            "  --colour C                      of the paint (red | blue)\n"
            "  --note TEXT                     " +
                first +
                " and\n                                  thirteen\n"
                "  -h, --help                      print this\n\n"
                "Example: carnot paint north --colour red\n");
}

}  // namespace
}  // namespace carnot
