#include "carnot/cli/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "carnot/base/file.h"
#include "carnot/cli/command_line.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> kKeys{"train.steps", "train.groups", "seed"};

/// What bash would offer behind these words.
std::vector<std::string> offered(const std::string& words) {
  const auto file = std::filesystem::temp_directory_path() / ("carnot_completion_" + std::to_string(::getpid()));
  const std::string script = completion_script("bash", command_usages(), kKeys) + "COMP_WORDS=(" + words +
                             ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_carnot\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  EXPECT_TRUE(write_file_atomically(file, script).ok());
  std::vector<std::string> words_offered;
  std::FILE* bash = popen(("bash --norc " + file.string() + " 2>&1").c_str(), "r");
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), bash) != nullptr) {
    const std::string text(line.data());
    if (text.size() > 1) words_offered.push_back(text.substr(0, text.size() - 1));
  }
  EXPECT_EQ(pclose(bash), 0);
  std::filesystem::remove(file);
  return words_offered;
}

TEST(Completion, InBashOffersCommandsFlagsValuesAndKeys) {
  EXPECT_THAT(offered("carnot ev"), ElementsAre("eval"));
  EXPECT_THAT(offered("carnot train --d"), ElementsAre("--dry-run"));
  EXPECT_THAT(offered("carnot generate --device c"), ElementsAre("cpu", "cuda"));
  EXPECT_THAT(offered("carnot train recipe.yaml train."), ElementsAre("train.steps=", "train.groups="));
  EXPECT_THAT(offered("carnot list me"), ElementsAre("methods"));
  EXPECT_THAT(offered("carnot help to"), ElementsAre("tokenize"));
  EXPECT_THAT(offered("carnot inspect /nowhere"), IsEmpty());  // files are bash's own business
}

TEST(Completion, KnowsEveryFlagInEveryShell) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = completion_script(shell, command_usages(), kKeys);
    for (const CommandUsage& usage : command_usages())
      for (const OptionUsage& option : usage.options)
        if (!option.operand) {
          EXPECT_THAT(script, HasSubstr(shell == "fish" ? "-l " + option.name.substr(2) : option.name)) << shell;
        }
  }
}

TEST(Manual, HasEveryCommandAndEveryOption) {
  const std::string page = manual_page(command_usages(), "1.2.3");
  EXPECT_THAT(page, HasSubstr(".TH CARNOT 1 \"\" \"carnot 1.2.3\""));
  for (const CommandUsage& usage : command_usages()) {
    EXPECT_THAT(page, HasSubstr(".SS carnot " + usage.name));
    for (const OptionUsage& option : usage.options)
      if (!option.operand) {
        EXPECT_THAT(page, HasSubstr(".B \\-\\-" + option.name.substr(2, 2))) << option.name;
      }
  }
}

TEST(UsageText, BreaksLinesAtTheWidthOfATerminalAndListsWords) {
  const std::string first = "one two three four five six seven eight nine ten eleven twelve", rest = "and thirteen";
  const CommandUsage usage{
      .name = "paint",
      .arguments = "WALL",
      .summary = "a wall in a colour",
      .options = {{.name = "WALL", .help = "which one", .operand = true, .required = true},
                  {.name = "--colour", .argument = "C", .help = "of the paint", .words = {"red", "blue"}},
                  {.name = "--note", .argument = "TEXT", .help = first + " " + rest}}};
  EXPECT_EQ(usage_text(usage),
            "carnot paint WALL\n\na wall in a colour\n\n"
            "  WALL                            which one\n"
            "  --colour C                      of the paint (red | blue)\n"
            "  --note TEXT                     " +
                first + " and\n                                  thirteen\n"
                "  -h, --help                      print this\n");
}

}  // namespace
}  // namespace carnot
