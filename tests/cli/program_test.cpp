// What a user of the program sees: help, refusals, environments, tokens.
#include "program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "testing/paths.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kQwen2 = source_path("tests/golden/tokenizer/qwen2_small");

TEST(Program, HelpGoesToStandardOutputAndWrongUseToStandardError) {
  const auto help = run_carnot({"--help"});
  EXPECT_EQ(help.exit, 0);
  EXPECT_THAT(help.out, HasSubstr("carnot env NAME"));
  EXPECT_EQ(help.err, "");
  const auto nothing = run_carnot({});
  EXPECT_EQ(nothing.exit, 2);
  EXPECT_EQ(nothing.out, "");
  EXPECT_THAT(nothing.err, StartsWith("carnot: expected a command"));
  EXPECT_THAT(run_carnot({"--version"}).out, StartsWith("carnot 0."));
}

TEST(Program, AnUnknownCommandIsAnsweredWithTheNearest) {
  const auto run = run_carnot({"tokenise", "x"});
  EXPECT_EQ(run.exit, 2);
  EXPECT_EQ(run.err, "carnot: there is no command 'tokenise'; did you mean 'tokenize'?\n");
}

TEST(Program, CompletesItselfAndPrintsItsManual) {
  const auto bash = run_carnot({"completion", "bash"});
  ASSERT_EQ(bash.exit, 0) << bash.err;
  EXPECT_THAT(bash.out, HasSubstr("complete -o default -o bashdefault -F _carnot carnot"));
  EXPECT_THAT(bash.out, HasSubstr("train.learning_rate="));
  EXPECT_THAT(run_carnot({"completion", "fish"}).out, HasSubstr("complete -c carnot"));
  EXPECT_EQ(run_carnot({"completion", "tcsh"}).exit, 2);
  EXPECT_THAT(run_carnot({"man"}).out, StartsWith(".TH CARNOT 1"));
}

TEST(Program, HelpOfAnEnvironmentShowsItsKeys) {
  const auto run = run_carnot({"env", "sokoban", "--help"});
  EXPECT_EQ(run.exit, 0);
  EXPECT_THAT(run.out, HasSubstr("--seed"));
  EXPECT_THAT(run.out, HasSubstr("dim_x"));
  EXPECT_THAT(run_carnot({"credit", "--method", "grpo", "--help"}).out, HasSubstr("divide_by_std"));
}

TEST(Program, ListsEverythingAsTextAndAsJson) {
  EXPECT_THAT(run_carnot({"list"}).out, HasSubstr("arXiv:2402.03300"));
  EXPECT_THAT(run_carnot({"list", "methods"}).out, HasSubstr("sequence_mean_token_mean (eq. 3), no dual clip"));
  const Json everything = Json::parse(run_carnot({"list", "--json"}).out);
  EXPECT_EQ(everything.at("methods").at(1).at("name"), "grpo");
  EXPECT_EQ(Json::parse(run_carnot({"list", "environments", "--json"}).out), everything.at("environments"));
  EXPECT_EQ(Json::parse(run_carnot({"list", "chats", "--json"}).out), everything.at("chats"));
}

TEST(Program, ReportsEveryWrongOptionAtOnceAndPlaysNothing) {
  const auto run = run_carnot({"env", "sokoban", "dim_z=3", "num_boxes=many", "search_depth=-4", "max_steps"});
  EXPECT_EQ(run.exit, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("carnot: command line: dim_z: unknown key; did you mean dim_"));
  EXPECT_THAT(run.err, HasSubstr("carnot: command line: num_boxes: expected an integer"));
  EXPECT_THAT(run.err, HasSubstr("carnot: command line: search_depth: expected an integer"));
  EXPECT_THAT(run.err, HasSubstr("expected key=value, found \"max_steps\""));
}

TEST(Program, AnUnknownEnvironmentIsAnsweredWithTheKnownOnes) {
  const auto run = run_carnot({"env", "chess"});
  EXPECT_EQ(run.exit, 1);
  EXPECT_THAT(run.err, HasSubstr("'chess'"));
  EXPECT_THAT(run.err, HasSubstr("frozen_lake"));
}

TEST(Program, ReplaysRecordedBoards) {
  for (const std::string name : {"sokoban_simple", "frozen_lake", "sudoku"}) {
    const auto text = read_maybe_compressed(recorded_path("boards/") + name + ".jsonl.xz").value();
    const auto lines = split_lines(text);
    for (const std::size_t i : {0u, 21u}) {
      const Json golden = Json::parse(lines[i]);
      std::string actions;
      for (const Json& step : golden.at("trace")) actions += step.at("action").get<std::string>() + "\n";
      const auto run = run_carnot(
          {"env", golden.at("env"), "--json", "--seed", std::to_string(golden.at("seed").get<int>())}, actions);
      ASSERT_EQ(run.exit, 0) << run.err;
      const auto played = split_lines(run.out);
      ASSERT_EQ(played.size(), golden.at("trace").size() + 1) << name;
      const Json opening = Json::parse(played[0]);
      EXPECT_EQ(opening.at("board"), golden.at("board"));
      EXPECT_EQ(opening.at("observation"), golden.at("observation"));
      for (std::size_t k = 1; k < played.size(); ++k) {
        const Json& recorded = golden.at("trace").at(k - 1);
        const Json answer = Json::parse(played[k]);
        for (const auto& [key, value] : answer.items())
          EXPECT_EQ(value, recorded.at(key)) << name << " line " << i << " action " << k << " " << key;
      }
    }
  }
}

TEST(Program, TokenizesAndDecodesLineByLine) {
  const std::string text = "\"Grüße,\\n日本 <|im_end|> 12345\"\n\"\"\n\"\\ud83d\\ude42\"\n";
  const auto ids = run_carnot({"tokenize", kQwen2}, text);
  ASSERT_EQ(ids.exit, 0) << ids.err;
  const auto back = run_carnot({"tokenize", kQwen2, "--decode"}, ids.out);
  ASSERT_EQ(back.exit, 0) << back.err;
  EXPECT_EQ(back.out, "\"Grüße,\\n日本 <|im_end|> 12345\"\n\"\"\n\"🙂\"\n");
}

TEST(Program, StopsAtALineThatIsNotJsonAndNamesIt) {
  const auto run = run_carnot({"tokenize", kQwen2}, "\"a\"\n[1]\n\"b\"\n");
  EXPECT_EQ(run.exit, 1);
  EXPECT_EQ(split_lines(run.out).size(), 1u);
  EXPECT_THAT(run.err, HasSubstr("line 2"));
  EXPECT_EQ(run_carnot({"tokenize", "/nowhere"}).exit, 1);
}

}  // namespace
}  // namespace carnot::testing
