#include "carnot/core/env/play.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "carnot/core/base/file.h"

namespace carnot {
namespace {

using nlohmann::json;

std::string played(PlayOptions options, const std::string& input) {
  const auto factory = make_environment_factory(options.name).value();
  EXPECT_TRUE(factory->prepare(0).ok());
  std::istringstream in(input);
  std::ostringstream out;
  const Status status = play(*factory, options, in, out);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return out.str();
}

TEST(Play, ShowsTheStateThenAnswersEachActionLine) {
  EXPECT_EQ(played({.name = "sokoban", .seed = 123}, "jump\r\nDown\n"),
            "######\n######\n#O####\n#XP###\n#__###\n######\n"
            "######\n######\n#O####\n#XP###\n#__###\n######\n"
            "reward: 0.0\ndone: false  success: false  effective: false  valid: false\n"
            "######\n######\n#O####\n#X_###\n#_P###\n######\n"
            "reward: -0.1\ndone: false  success: false  effective: true  valid: true\n");
}

TEST(Play, StopsAtTheEndOfTheGameAndLeavesTheRestUnread) {
  const std::string text = played({.name = "sokoban", .seed = 123}, "Down\nLeft\nUp\nUp\nUp\n");
  EXPECT_TRUE(text.ends_with("reward: 10.9\ndone: true  success: true  effective: true  valid: true\n")) << text;
}

TEST(Play, WritesOneObjectALineInJson) {
  const std::string text = played({.name = "sudoku", .seed = 142, .json = true}, "Place 9 at 1,1\nnonsense\xff\n");
  const auto lines = split_lines(text);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].starts_with("{\"env\": \"sudoku\", \"config\": {\"grid_size\": 4, "));
  EXPECT_EQ(json::parse(lines[0]).at("board"), "3124\n4000\n0340\n0432");
  EXPECT_EQ(json::parse(lines[1]).at("reward"), -0.1);
  EXPECT_EQ(json::parse(lines[2]).at("action"), "nonsense\uFFFD");
}

TEST(Play, TalksThroughThePromptsWhenAsked) {
  const std::string text = played({.name = "sokoban", .seed = 123, .prompt = true},
                                  "Go.\\nNow.</think><answer>Down || Left</answer>\n"
                                  "<think></think><answer>Up</answer>\n");
  EXPECT_TRUE(text.starts_with("[system]\nYou're a helpful assistant. You are solving the Sokoban puzzle. \n"));
  EXPECT_NE(text.find("[user]\n\nTurn 1:\nState:\n######\n"), std::string::npos);
  EXPECT_NE(text.find("[user]\nReward:\n-0.2\n\nTurn 2:\nState:\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("[reward 10.9, penalty 0.0, finished, success]\n")) << text;
}

TEST(Play, TalksThroughThePromptsInJsonToo) {
  const std::string text = played({.name = "frozen_lake", .seed = 142, .json = true, .prompt = true},
                                  "dunno\na\\\\nb\\n</think><answer>Left</answer>\n");
  const auto lines = split_lines(text);
  ASSERT_EQ(lines.size(), 3u);
  const json head = json::parse(lines[0]), first = json::parse(lines[1]), second = json::parse(lines[2]);
  EXPECT_EQ(head.at("assistant_prefix"), "<think>");
  EXPECT_TRUE(head.at("system").get<std::string>().starts_with("You're a helpful assistant. "));
  EXPECT_EQ(first.at("response"), "<think>dunno");
  EXPECT_EQ(first.at("penalty"), -0.1);
  EXPECT_EQ(first.at("valid_action"), false);
  EXPECT_TRUE(first.at("outcome").is_null());
  EXPECT_EQ(second.at("response"), "<think>a\\nb\n</think><answer>Left</answer>");
  EXPECT_EQ(second.at("valid_action"), true);
}

}  // namespace
}  // namespace carnot
