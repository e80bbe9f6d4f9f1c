#include "carnot/worlds/ragen/conversation.h"

#include <gtest/gtest.h>

#include "carnot/core/env/environment.h"

namespace carnot {
namespace {

using Actions = std::vector<std::string>;

Actions actions_of(std::string_view response, int most = 2) { return parse_ragen_answer(response, most).actions; }

TEST(RagenAnswer, SplitsTheAnswerAtDoubleBarsAndKeepsTheFirstFew) {
  EXPECT_EQ(actions_of("<think>a</think><answer>Up || Left</answer>"), (Actions{"Up", "Left"}));
  EXPECT_EQ(actions_of("<think>a</think> \n<answer> Up||  || Left|| Down </answer>"), (Actions{"Up", "Left"}));
  EXPECT_EQ(actions_of("<think>a</think><answer>Up || Left || Down</answer>", 3), (Actions{"Up", "Left", "Down"}));
  EXPECT_EQ(actions_of("<think>a</think><answer>Up | Left</answer>"), (Actions{"Up | Left"}));
  EXPECT_EQ(actions_of("<think>a</think><answer></answer>"), Actions{});
}

TEST(RagenAnswer, NeedsThoughtThenAnswerBothClosed) {
  for (const char* response : {"", "Up", "<answer>Up</answer>", "<think>a<answer>Up</answer>", "<think>a</think>Up",
                               "<think>a</think> then <answer>Up</answer>", "<think>a</think><answer>Up",
                               "</think><answer>Up</answer><think>"}) {
    const auto answer = parse_ragen_answer(response, 2);
    EXPECT_FALSE(answer.parsed) << response;
    EXPECT_TRUE(answer.actions.empty()) << response;
  }
  EXPECT_TRUE(parse_ragen_answer("<think>a</think><answer></answer>", 2).parsed);
}

TEST(RagenAnswer, LetsTheThoughtRunOnToTheLastCloseBeforeAnAnswer) {
  const auto answer =
      parse_ragen_answer("<think>one</think> two\n</think>\n<answer>Up</answer><answer>Left</answer>", 2);
  EXPECT_EQ(answer.thought, "one two");
  EXPECT_EQ(answer.actions, Actions{"Up"});
}

TEST(RagenAnswer, RemovesTagsAndChatTokensInsideBothParts) {
  const auto answer = parse_ragen_answer(
      "<think> a<think>b<|im_end|> </think><answer><|im_start|>Up<answer> || <think>Down</answer>", 2);
  EXPECT_EQ(answer.thought, "ab");
  EXPECT_EQ(answer.actions, (Actions{"Up", "Down"}));
}

std::unique_ptr<Environment> instance(const std::string& name, std::uint64_t seed) {
  static std::map<std::string, std::unique_ptr<EnvironmentFactory>> factories;
  auto& factory = factories[name];
  if (!factory) {
    factory = make_environment_factory(name).value();
    EXPECT_TRUE(factory->prepare(0).ok());
  }
  auto environment = factory->make_instance(seed);
  environment->open();
  return environment;
}

std::string spoken(std::string_view actions) {
  return "<think>So.</think><answer>" + std::string(actions) + "</answer>";
}

TEST(RagenConversation, PenalisesATurnWithAnUnknownActionButPlaysTheKnownOnes) {
  const auto sokoban = instance("sokoban", 142);
  const Reply reply = sokoban->step(spoken("Jump || left"));
  EXPECT_EQ(reply.penalty, -0.1);
  EXPECT_FALSE(reply.valid_action);
  EXPECT_EQ(reply.reward, -0.1);
  EXPECT_EQ(reply.text.find("Reward:\n-0.1\n\nTurn 2:\nState:\n"), 0u);
  EXPECT_NE(reply.text.find("You have 9 actions left."), std::string::npos);
  EXPECT_EQ(reply.text.find("No valid action"), std::string::npos) << "one action was valid";
}

TEST(RagenConversation, WarnsAfterATurnWithoutAnyValidAction) {
  const auto lake = instance("frozen_lake", 142);
  const std::string before = lake->anchor();
  const Reply reply = lake->step("<think>I do not know");
  EXPECT_EQ(lake->anchor(), before);
  EXPECT_EQ(reply.reward, 0);
  EXPECT_EQ(reply.penalty, -0.1);
  EXPECT_EQ(reply.text.find("Reward:\n0\n\nTurn 2:\nState:\n"), 0u);
  EXPECT_NE(reply.text.find("\nNo valid action provided previously. Environment state remains the same. Please try "
                            "again.\nYou have 10 actions left. Always output:"),
            std::string::npos);
  EXPECT_EQ(lake->step(spoken("Left")).text.find("No valid action"), std::string::npos);
}

TEST(RagenConversation, EndsOutOfTurnsWhenTheActionsAreSpent) {
  const auto sokoban = instance("sokoban", 142);
  for (int turn = 0; turn < 4; ++turn) EXPECT_FALSE(sokoban->step(spoken("Left || Right")).done);
  const Reply last = sokoban->step(spoken("Left || Right"));
  EXPECT_TRUE(last.done);
  EXPECT_EQ(last.outcome, Outcome::OutOfTurns);
  EXPECT_FALSE(last.success);
  EXPECT_TRUE(last.text.empty());
  EXPECT_EQ(last.measures.at("actions"), 10);
  EXPECT_EQ(last.measures.at("valid_turns"), 1);
}

TEST(RagenConversation, EndsFinishedAtAHoleAndWithSuccessAtTheGoal) {
  const auto sokoban = instance("sokoban", 123);
  EXPECT_FALSE(sokoban->step(spoken("Down || Left")).done);
  const Reply reply = sokoban->step(spoken("UP || Down"));
  EXPECT_TRUE(reply.done && reply.success);
  EXPECT_EQ(reply.outcome, Outcome::Finished);
  EXPECT_EQ(reply.reward, 10.9) << "nothing is played after the end";
  EXPECT_EQ(reply.penalty, 0);

  const auto lake = instance("frozen_lake", 123);
  const Reply hole = lake->step(spoken("Down"));
  EXPECT_TRUE(hole.done);
  EXPECT_FALSE(hole.success);
  EXPECT_EQ(hole.outcome, Outcome::Finished);
}

TEST(RagenConversation, PassesFreeTextThroughWhereTheGameHasNoActionTable) {
  const auto sudoku = instance("sudoku", 142);
  const Reply reply = sudoku->step(spoken("place 2 at row 2 col 2 || dance"));
  EXPECT_TRUE(reply.valid_action) << "refused by the game, not by the conversation";
  EXPECT_EQ(reply.penalty, 0);
  EXPECT_EQ(reply.reward, 0.9);
  EXPECT_NE(reply.text.find("Could not parse action: 'dance'"), std::string::npos);
  EXPECT_NE(reply.text.find("You have 8 actions left."), std::string::npos);
}

}  // namespace
}  // namespace carnot
