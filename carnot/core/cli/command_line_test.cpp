#include "carnot/core/cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "carnot/core/cli/entries.h"
#include "testing/every_option.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Exit print_recipe(const std::filesystem::path& recipe, const std::vector<std::string>& overrides,
                  const Console& console) {
  console.out << "keys of '" << recipe.string() << "'";
  for (const std::string& setting : overrides) console.out << ' ' << setting;
  console.out << '\n';
  return Exit::Success;
}

/// The room's commands, and `train`, which takes an argument of every kind.
const CommandTable& table() {
  static const CommandTable all{.commands = {testing::every_option_entry("train"), inspect_entry(), credit_entry({}),
                                             list_entry({}), environment_entry(), tokenize_entry(), help_entry()},
                                .version = "1.2.3",
                                .print_recipe_keys = print_recipe};
  return all;
}

/// What the arguments print, with the exit status in front where it is not 0.
std::string printed(const std::vector<std::string>& arguments) {
  const auto action = parse_command_line(table(), arguments);
  if (!action) return "refused: " + action.error().message;
  std::istringstream in;
  std::ostringstream out, err;
  const Exit exit = (*action)({.in = in, .out = out, .err = err});
  return (exit == Exit::Success ? "" : std::to_string(static_cast<int>(exit)) + " ") + out.str() + err.str();
}

std::string refused(const std::vector<std::string>& arguments) {
  const auto action = parse_command_line(table(), arguments);
  return action ? "accepted" : action.error().message;
}

TEST(CommandLine, TakesSettingsAndFlagsInAnyOrder) {
  EXPECT_EQ(printed({"train", "a=1", "--seed", "7", "names=[a, b]", "--dry-run"}),
            "a=1 | names=[a, b] | | | 11 auto float32 1 -1 1 -1 7\n");  // the first word is the operand, as it looks
  const std::string board = printed({"env", "sokoban", "dim_x=8", "--seed", "7", "num_boxes=2", "--json"});
  EXPECT_THAT(board, HasSubstr("\"dim_x\": 8"));
  EXPECT_THAT(board, HasSubstr("\"num_boxes\": 2"));
  EXPECT_THAT(board, HasSubstr("\"seed\": 7"));
}

TEST(CommandLine, PlaysTheEnvironmentOfARecipe) {
  const std::string recipe = ::testing::TempDir() + "/played.yaml";
  std::ofstream(recipe) << "seed: 3\nmethod: grpo\ntrain: {steps: 7}\nenv: {name: sokoban, dim_x: 8}\n";
  const std::string board = printed({"env", recipe, "num_boxes=2", "--json"});
  EXPECT_THAT(board, HasSubstr("{\"env\": \"sokoban\""));
  EXPECT_THAT(board, HasSubstr("\"dim_x\": 8"));
  EXPECT_THAT(board, HasSubstr("\"num_boxes\": 2"));
  EXPECT_THAT(printed({"env", recipe, "dim_z=2"}), HasSubstr("env.dim_z: unknown key"));
  std::ofstream(recipe) << "seed: 3\n";
  EXPECT_THAT(printed({"env", recipe}), HasSubstr("played.yaml: names no environment; expected env: NAME"));
  std::filesystem::remove(recipe);
}

TEST(CommandLine, TakesArgumentsOfEveryKind) {
  EXPECT_EQ(printed({"train",
                     "r.yaml",
                     "x=1",
                     "--no-color",
                     "--chat",
                     "chatml",
                     "--dtype",
                     "float64",
                     "--until",
                     "a",
                     "--until",
                     "b",
                     "--columns",
                     "entropy,weight",
                     "--top-p",
                     "0.5",
                     "--temperature",
                     "0",
                     "--samples",
                     "3",
                     "--top-k",
                     "0",
                     "--seed",
                     "18446744073709551615",
                     "y=2"}),
            "r.yaml | x=1 y=2 | a b | entropy weight | 00 chatml float64 0.5 0 3 0 18446744073709551615\n");
}

TEST(CommandLine, NothingHappensBeforeTheActionIsCalled) {
  const auto action = parse_command_line(table(), std::vector<std::string>{"tokenize", "/nowhere"});
  ASSERT_TRUE(action.ok());
  EXPECT_THAT(printed({"tokenize", "/nowhere"}), StartsWith("1 carnot: /nowhere"));
}

TEST(CommandLine, SuggestsTheNearestCommand) {
  EXPECT_EQ(refused({"inpsect", "run"}), "there is no command 'inpsect'; did you mean 'inspect'?");
  EXPECT_THAT(refused({"zebra"}), StartsWith("there is no command 'zebra'; there are: train, inspect, "));
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
  EXPECT_THAT(refused({"train", "r.yaml", "--rollout.group-size", "4"}), HasSubstr("as in rollout.group_size=4"));
  EXPECT_THAT(refused({"env", "sokoban", "--dim-x", "8"}), HasSubstr("as in dim_x=8"));
  EXPECT_THAT(refused({"train", "r.yaml", "--dry-rum"}), HasSubstr("did you mean '--dry-run'?"));
  EXPECT_THAT(refused({"credit", "rows.jsonl", "--metod", "grpo"}), HasSubstr("did you mean '--method'?"));
  EXPECT_THAT(refused({"tokenize", "a", "b"}), HasSubstr("expected no further argument, found 'b'"));
}

TEST(CommandLine, RefusesValuesThatAreNotNumbersInRange) {
  EXPECT_THAT(refused({"train", "r", "--top-p", "nan"}),
              StartsWith("train: --top-p: expected a number at least 1e-09 and at most 1, found 'nan'"));
  EXPECT_THAT(refused({"train", "r", "--temperature", "inf"}), HasSubstr("--temperature: expected"));
  EXPECT_THAT(refused({"train", "r", "--samples", "2147483647"}), HasSubstr("at most 1000000000"));
  EXPECT_THAT(refused({"train", "r", "--seed", "18446744073709551616"}), HasSubstr("below 2^64"));
  EXPECT_THAT(refused({"train", "r", "--samples", "0"}), HasSubstr("an integer at least 1, found"));
  EXPECT_THAT(refused({"train", "r", "--dtype", "int8"}), HasSubstr("one of float32 | float64"));
  EXPECT_THAT(refused({"train", "r", "--chat"}), HasSubstr("--chat: expected a value after it"));
  EXPECT_THAT(refused({"train", "r", "--seed", "1", "--seed", "2"}), HasSubstr("--seed: given twice"));
}

TEST(CommandLine, HelpKnowsWhichEnvironmentMethodOrRecipeItIsAbout) {
  EXPECT_THAT(printed({"env", "sudoku", "--help"}), HasSubstr("Keys of sudoku:\n"));
  EXPECT_THAT(printed({"credit", "--method", "grpo + aem", "-h"}), HasSubstr("Keys of grpo + aem:\n"));
  EXPECT_THAT(printed({"help", "tokenize"}), HasSubstr("--decode"));
  for (const std::vector<std::string>& help :
       {std::vector<std::string>{"help"}, {"help", "--help"}, {"help", "-h"}, {"help", "help"}, {"--help"}, {"-h"}})
    EXPECT_THAT(printed(help), HasSubstr("carnot inspect PATH"));
  EXPECT_EQ(printed({"help", "keys", "mine.yaml", "a=1", "b=2"}), "keys of 'mine.yaml' a=1 b=2\n");
  EXPECT_EQ(printed({"help", "keys"}), "keys of ''\n");
  EXPECT_EQ(printed({"help", "keys", "env=sokoban", "a=1"}), "keys of '' env=sokoban a=1\n");
  EXPECT_EQ(printed({"help", "inpsect"}), "refused: there is no command 'inpsect'; did you mean 'inspect'?");
  EXPECT_EQ(printed({"--version"}), "carnot 1.2.3\n");
}

}  // namespace
}  // namespace carnot
