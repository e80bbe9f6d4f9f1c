#include "carnot/env/sokoban.h"

#include <gtest/gtest.h>

#include "testing/field_settings.h"

namespace carnot {
namespace {

Sokoban instance(const SokobanOptions& options, std::uint64_t seed) {
  return Sokoban(options, make_sokoban_room(options.room(), seed).value());
}

TEST(Sokoban, DrawsLettersWhereAsked) {
  EXPECT_EQ(instance({.letter_symbols = true}, 123).observation(), "WWWWWW\nWWWWWW\nWGWWWW\nWBAWWW\nW..WWW\nWWWWWW");
}

TEST(Sokoban, EndsUnsolvedAtItsStepCapCountingBlockedMovesButNotUnknownWords) {
  Sokoban game = instance({.max_steps = 2}, 123);
  EXPECT_FALSE(game.step("fly").valid);
  const GameStep blocked = game.step("Up");
  EXPECT_TRUE(blocked.valid);
  EXPECT_FALSE(blocked.effective || blocked.done);
  const GameStep last = game.step(" right ");
  EXPECT_TRUE(last.done);
  EXPECT_FALSE(last.success);
  EXPECT_THROW(game.step("Up"), CheckError);
}

TEST(Sokoban, KeepsItsBoardWhileTheGameGoesOn) {
  Sokoban game = instance({}, 123);
  const std::string board = game.board_json();
  game.step("Down");
  EXPECT_EQ(game.board_json(), board);
  EXPECT_NE(game.clone()->observation(), instance({}, 123).observation());
}

std::string refusal(std::unique_ptr<EnvironmentFactory> factory, const std::map<std::string, std::string>& options) {
  testing::FieldSettings settings(options);
  factory->fields(settings);
  const Status status = factory->prepare(0);
  return status.ok() ? "" : status.error().message;
}

TEST(Sokoban, RefusesRoomsThatCannotBeMade) {
  EXPECT_NE(refusal(make_sokoban(), {{"dim_x", "4"}, {"dim_y", "4"}, {"num_boxes", "4"}}).find("no room of 4 x 4"),
            std::string::npos);
}

}  // namespace
}  // namespace carnot
