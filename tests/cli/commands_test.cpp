// The table of commands: every command has help, completion and a place in the manual, and none runs when its arguments
// are only parsed.
#include "carnot/program/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <regex>
#include <sstream>

#include "carnot/core/base/file.h"
#include "testing/paths.h"

namespace carnot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<CommandUsage> usages() { return command_usages(carnot_commands().commands); }

Result<Action> parsed(const std::vector<std::string>& arguments) {
  return parse_command_line(carnot_commands(), arguments);
}

std::string refused(const std::vector<std::string>& arguments) {
  const auto action = parsed(arguments);
  return action ? "accepted" : action.error().message;
}

const std::vector<std::string> kKeys{"train.steps", "train.groups_per_step", "seed"};

/// What bash would offer after these words.
std::vector<std::string> offered(const std::string& words) {
  const auto file = std::filesystem::temp_directory_path() / ("carnot_completion_" + std::to_string(::getpid()));
  const std::string script = completion_script("bash", usages(), kKeys) + "COMP_WORDS=(" + words +
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
  EXPECT_THAT(offered("carnot train recipe.yaml train."), ElementsAre("train.steps=", "train.groups_per_step="));
  EXPECT_THAT(offered("carnot list me"), ElementsAre("methods"));
  EXPECT_THAT(offered("carnot help tok"), ElementsAre("tokenize"));
  EXPECT_THAT(offered("carnot inspect /nowhere"), IsEmpty());  // bash completes files itself
}

TEST(Completion, KnowsEveryFlagInEveryShell) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = completion_script(shell, usages(), kKeys);
    for (const CommandUsage& usage : usages())
      for (const OptionUsage& option : usage.options)
        if (!option.operand) {
          EXPECT_THAT(script, HasSubstr(shell == "fish" ? "-l " + option.name.substr(2) : option.name)) << shell;
        }
  }
}

TEST(Manual, HasEveryCommandAndEveryOption) {
  const std::string page = manual_page(usages(), "1.2.3");
  EXPECT_THAT(page, HasSubstr(".TH CARNOT 1 \"\" \"carnot 1.2.3\""));
  for (const CommandUsage& usage : usages()) {
    EXPECT_THAT(page, HasSubstr(".SS carnot " + std::regex_replace(usage.name, std::regex("-"), "\\-")));
    for (const OptionUsage& option : usage.options)
      if (!option.operand) {
        EXPECT_THAT(page, HasSubstr(".B \\-\\-" + option.name.substr(2, 2))) << option.name;
      }
  }
}

/// The words of a command line, in which double quotes keep blanks.
std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> std::quoted(word);) words.push_back(word);
  return words;
}

TEST(Commands, HaveHelpThatEndsWithAnExampleTheyAccept) {
  for (const CommandUsage& usage : usages()) {
    EXPECT_THAT(usage_text(usage), EndsWith("\nExample: " + usage.example + "\n"));
    const std::vector<std::string> words = words_of(usage.example);
    ASSERT_GT(words.size(), usage.arguments.empty() ? 1u : 2u) << usage.name;
    EXPECT_EQ(refused({words.begin() + 1, words.end()}), "accepted") << usage.example;
  }
}

TEST(Commands, HelpNamesNoTypeOfTheParsingLibrary) {
  for (const CommandUsage& usage : usages()) {
    ASSERT_TRUE(parsed({"help", usage.name}).ok()) << usage.name;
    for (const char* leftover : {"NONNEGATIVE", "POSITIVE", "REQUIRED", "TEXT:", "[0", "in [", ":{"})
      EXPECT_THAT(usage_text(usage), Not(HasSubstr(leftover))) << usage.name;
  }
}

TEST(Commands, ThatReadARecipeAnswerAFlagWithTheSetting) {
  for (const char* command : {"train", "sft", "rollout", "compare", "eval"})
    EXPECT_THAT(refused({command, "r.yaml", "--rollout.group-size", "4"}), HasSubstr("as in rollout.group_size=4"));
  EXPECT_THAT(refused({"analyze", "aem_drift", "--temperature", "2"}), HasSubstr("as in temperature=2"));
}

TEST(Commands, OfModelsRefuseValuesThatAreNotNumbersInRange) {
  EXPECT_THAT(refused({"generate", "--model", "m", "--top-p", "nan"}),
              StartsWith("generate: --top-p: expected a number at least 1e-09 and at most 1, found 'nan'"));
  EXPECT_THAT(refused({"generate", "--model", "m", "--max-tokens", "2147483647"}), HasSubstr("at most 1000000000"));
  EXPECT_THAT(refused({"generate", "--model", "m", "--dtype", "int8"}), HasSubstr("one of float32 | float64"));
  EXPECT_THAT(refused({"score", "--model", "m", "--temperature", "0"}), HasSubstr("--temperature: expected"));
  EXPECT_THAT(refused({"generate"}), HasSubstr("--model is required"));
}

/// The corpus of the fuzz target, which knows the commands without LibTorch alone.
TEST(Commands, ReadAnyArgumentsWithoutRunning) {
  const std::filesystem::path corpus = source_path("tests/fuzz/corpus/command_line");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    const auto text = read_file(entry.path());
    ASSERT_TRUE(text.ok());
    std::vector<std::string> arguments;
    for (const std::string_view line : split_lines(*text)) arguments.emplace_back(line.substr(0, line.find('\0')));
    const auto action = parsed(arguments);
    EXPECT_TRUE(action.ok() || !action.error().message.empty()) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace carnot::testing
