#include "carnot/cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Result<Request> parsed(const std::vector<std::string>& arguments) { return parse_command_line(arguments); }

std::string refused(const std::vector<std::string>& arguments) {
  const auto request = parsed(arguments);
  return request ? "accepted" : request.error().message;
}

TEST(CommandLine, TakesOverridesAndFlagsInAnyOrder) {
  const auto request = parsed({"env", "dim_x=8", "--seed", "7", "names=[a, b]", "--json"});
  ASSERT_TRUE(request.ok());
  const auto& play = std::get<PlayRequest>(*request);
  EXPECT_EQ(play.name, "dim_x=8");  // the first word is the name, whatever it looks like
  EXPECT_EQ(play.seed, 7u);
  EXPECT_TRUE(play.json);
  EXPECT_FALSE(play.prompt);
  EXPECT_THAT(play.overrides, ElementsAre("names=[a, b]"));
}

TEST(CommandLine, SplitsColumnsAtCommasAndLeavesThePathAlone) {
  const auto request = parsed({"inspect", "--columns", "entropy,weight", "run", "--row", "3", "--no-color"});
  ASSERT_TRUE(request.ok()) << request.error().message;
  const auto& inspect = std::get<InspectRequest>(*request);
  EXPECT_EQ(inspect.path, "run");
  EXPECT_EQ(inspect.row, 3);
  EXPECT_THAT(inspect.columns, ElementsAre("entropy", "weight"));
  EXPECT_FALSE(inspect.colour);
  EXPECT_TRUE(std::get<InspectRequest>(*parsed({"inspect", "run"})).colour);
}

TEST(CommandLine, SuggestsTheNearestCommand) {
  EXPECT_EQ(refused({"inpsect", "run"}), "there is no command 'inpsect'; did you mean 'inspect'?");
  EXPECT_THAT(refused({"zebra"}), StartsWith("there is no command 'zebra'; there are: train, sft, "));
  EXPECT_EQ(refused({"recipes/a.yaml"}),
            "expected a command, found a recipe; did you mean `carnot train recipes/a.yaml`?");
  EXPECT_THAT(refused({"--dry-run", "train"}), HasSubstr("found the flag '--dry-run'"));
}

TEST(CommandLine, SaysWhatIsMissingOrUnknownAndWhereHelpIs) {
  EXPECT_THAT(refused({}), HasSubstr("carnot --help"));
  EXPECT_EQ(refused({"credit", "rows.jsonl"}),
            "credit: --method is required; `carnot credit --help` prints what it takes");
  EXPECT_THAT(refused({"tokenize", "folder", "--decoed"}), HasSubstr("--decoed"));
  EXPECT_THAT(refused({"env", "sokoban", "--seed", "-1"}), HasSubstr("--seed"));
  EXPECT_THAT(refused({"env", "sokoban", "--seed", "soon"}), HasSubstr("--seed"));
  EXPECT_THAT(refused({"list", "planets"}), HasSubstr("planets"));
}

TEST(CommandLine, ASettingWrittenAsAFlagIsAnsweredWithTheSetting) {
  EXPECT_EQ(refused({"train", "r.yaml", "--steps", "10"}),
            "train: there is no flag '--steps'; a setting is written key=value, as in train.steps=10");
  EXPECT_EQ(refused({"train", "r.yaml", "--lr=1e-5"}),
            "train: there is no flag '--lr=1e-5'; a setting is written key=value, as in train.learning_rate=1e-5");
  EXPECT_THAT(refused({"compare", "r.yaml", "--rollout.group-size", "4"}), HasSubstr("as in rollout.group_size=4"));
  EXPECT_THAT(refused({"env", "sokoban", "--dim-x", "8"}), HasSubstr("as in dim_x=8"));
  EXPECT_THAT(refused({"train", "r.yaml", "--dry-rum"}), HasSubstr("did you mean '--dry-run'?"));
  EXPECT_THAT(refused({"credit", "rows.jsonl", "--metod", "grpo"}), HasSubstr("did you mean '--method'?"));
  EXPECT_THAT(refused({"tokenize", "a", "b"}), HasSubstr("expected no further argument, found 'b'"));
}

TEST(CommandLine, RefusesNumbersThatAreNone) {
  EXPECT_THAT(refused({"generate", "--model", "m", "--top-p", "nan"}),
              StartsWith("generate: --top-p: expected a number at least 1e-09 and at most 1, found 'nan'"));
  EXPECT_THAT(refused({"generate", "--model", "m", "--temperature", "inf"}), HasSubstr("--temperature: expected"));
  EXPECT_THAT(refused({"generate", "--model", "m", "--max-tokens", "2147483647"}), HasSubstr("at most 1000000000"));
  EXPECT_THAT(refused({"generate", "--model", "m", "--seed", "18446744073709551616"}), HasSubstr("below 2^64"));
  EXPECT_THAT(refused({"generate", "--model", "m", "--samples", "0"}), HasSubstr("a whole number at least 1, found"));
  EXPECT_THAT(refused({"generate", "--model", "m", "--dtype", "int8"}), HasSubstr("one of float32 | float64"));
  EXPECT_THAT(refused({"generate", "--model"}), HasSubstr("--model: expected a value behind it"));
  EXPECT_THAT(refused({"generate", "--model", "m", "--seed", "1", "--seed", "2"}), HasSubstr("--seed: stands twice"));
  const auto most =
      parsed({"generate", "--model", "m", "--seed", "18446744073709551615", "--stop", "a", "--stop", "b"});
  ASSERT_TRUE(most.ok()) << most.error().message;
  EXPECT_EQ(std::get<GenerateRequest>(*most).seed, 18446744073709551615u);
  EXPECT_THAT(std::get<GenerateRequest>(*most).stop, ElementsAre("a", "b"));
}

TEST(CommandLine, HelpNamesNoTypeOfTheParsingLibrary) {
  for (const CommandUsage& usage : command_usages()) {
    const auto help = parsed({"help", usage.name});
    ASSERT_TRUE(help.ok()) << usage.name;
    for (const char* leftover : {"NONNEGATIVE", "POSITIVE", "REQUIRED", "TEXT:", "[0", "in [", ":{"})
      EXPECT_THAT(usage_text(usage), Not(HasSubstr(leftover))) << usage.name;
  }
}

TEST(CommandLine, HelpKnowsWhichEnvironmentOrMethodItIsAbout) {
  EXPECT_EQ(std::get<HelpRequest>(*parsed({"env", "sudoku", "--help"})).environment, "sudoku");
  EXPECT_EQ(std::get<HelpRequest>(*parsed({"credit", "--method", "grpo + aem", "-h"})).method, "grpo + aem");
  EXPECT_THAT(std::get<HelpRequest>(*parsed({"help", "tokenize"})).text, HasSubstr("--decode"));
  EXPECT_THAT(std::get<HelpRequest>(*parsed({"help"})).text, HasSubstr("carnot inspect PATH"));
  EXPECT_THAT(std::get<HelpRequest>(*parsed({"help", "--help"})).text, HasSubstr("carnot inspect PATH"));
  EXPECT_THAT(std::get<HelpRequest>(*parsed({"help", "-h"})).text, HasSubstr("carnot inspect PATH"));
  EXPECT_TRUE(std::holds_alternative<VersionRequest>(*parsed({"--version"})));
}

}  // namespace
}  // namespace carnot
