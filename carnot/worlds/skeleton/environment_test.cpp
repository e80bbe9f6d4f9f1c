#include "carnot/worlds/skeleton/environment.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

TEST(Skeleton, AnswersGuessesWithTooLowTooHighAndRight) {
  const auto factory = make_skeleton();
  const auto game = factory->make_game(5);
  ASSERT_TRUE(game.ok());
  Game& guess = **game;
  const int hidden = std::stoi(guess.board_json());
  EXPECT_FALSE(guess.step("many").valid);
  ASSERT_TRUE(hidden > 1 && hidden < 20);
  EXPECT_EQ(guess.step("1").observation, "1 is too low.");
  EXPECT_EQ(guess.step("20").observation, "20 is too high.");
  const GameStep last = guess.step(std::to_string(hidden));
  EXPECT_TRUE(last.done && last.success);
  EXPECT_EQ(python_number(last.reward), "1");
}

TEST(Skeleton, EveryNumberIsFoundByHalvingWithinTheTurns) {
  const auto factory = make_skeleton();
  for (std::int64_t index = 0; index < 100; ++index) {
    const auto environment = factory->make(Split::Train, index);
    environment->open();
    const auto agent = factory->script(*environment, 1, RandomStream(0));
    Reply reply;
    while (!reply.done) reply = environment->step(agent->respond(reply.text));
    EXPECT_TRUE(reply.success) << "task " << index;
  }
}

TEST(Skeleton, PenalisesWhatIsNotAGuess) {
  const auto environment = make_skeleton()->make(Split::Train, 0);
  environment->open();
  const Reply reply = environment->step("five");
  EXPECT_FALSE(reply.valid_action);
  EXPECT_EQ(reply.penalty, -0.1);
  EXPECT_EQ(reply.text, "That is not a guess. No guess yet.");
}

}  // namespace
}  // namespace carnot
