#include "carnot/cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  EXPECT_EQ(refused({"zebra"}), "there is no command 'zebra'; `carnot --help` lists them");
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

TEST(CommandLine, HelpKnowsWhichEnvironmentOrMethodItIsAbout) {
  EXPECT_EQ(std::get<HelpRequest>(*parsed({"env", "sudoku", "--help"})).environment, "sudoku");
  EXPECT_EQ(std::get<HelpRequest>(*parsed({"credit", "--method", "grpo + aem", "-h"})).method, "grpo + aem");
  EXPECT_THAT(std::get<HelpRequest>(*parsed({"help", "tokenize"})).text, HasSubstr("--decode"));
  EXPECT_THAT(std::get<HelpRequest>(*parsed({"help"})).text, HasSubstr("carnot inspect PATH"));
  EXPECT_TRUE(std::holds_alternative<VersionRequest>(*parsed({"--version"})));
}

}  // namespace
}  // namespace carnot
