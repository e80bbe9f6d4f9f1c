#include "carnot/worlds/sudoku/game.h"

#include <gtest/gtest.h>

namespace carnot {
namespace {

std::vector<int> read(std::string_view text) {
  const auto placement = parse_placement(text, 4);
  if (!placement) return {};
  return {placement->row, placement->column, placement->digit};
}

std::string refusal(std::string_view text) { return parse_placement(text, 4).error().message; }

TEST(SudokuPlacement, ReadsEveryFormWithOrWithoutBlanks) {
  const std::vector<int> expected = {1, 2, 3};
  for (const char* text :
       {"place 3 at row 1 col 2", "Place 3 At Row 1 Col 2", "place 3 at (1,2)", "place 3 at ( 1 , 2 )",
        "place 3 at 1,2", "3 at 1, 2", "(1,2,3)", "( 1, 2, 3 )", "1,2,3", " 1 , 2 , 3 ", "I say 01,2,3!"})
    EXPECT_EQ(read(text), expected) << text;
}

TEST(SudokuPlacement, PutsTheNumberFirstWhereverTheTextHoldsPlaceOrAt) {
  EXPECT_EQ(read("so that 1,2,3"), (std::vector<int>{2, 3, 1}));
  EXPECT_EQ(read("place (1,2,3)"), (std::vector<int>{2, 3, 1}));
}

TEST(SudokuPlacement, SaysWhatIsWrong) {
  EXPECT_EQ(refusal("5,9,9"), "Row 5 is out of range (1-4)");
  EXPECT_EQ(refusal("1,0,9"), "Column 0 is out of range (1-4)");
  EXPECT_EQ(refusal("1,1,99999999999999999999"), "Number 99999999999999999999 is out of range (1-4)");
  EXPECT_EQ(refusal("Up"), "Could not parse action: 'Up'. Expected format: 'place 5 at row 2 col 3' or '2,3,5'");
  EXPECT_FALSE(parse_placement("1,2", 4).ok());
}

TEST(SudokuGrid, DrawsGivenPlacedConflictingAndEmptyCells) {
  SudokuGrid start = empty_sudoku(4), grid = start;
  start.at(0, 0) = grid.at(0, 0) = 1;
  grid.at(0, 3) = 1;
  grid.at(3, 1) = 2;
  EXPECT_EQ(picture(grid, start), "*1* . |  . *1*\n .  . |  .  .\n-------------\n .  . |  .  .\n .  2 |  .  .");
  EXPECT_EQ(conflicting_cells(grid), (std::vector<int>{0, 3}));
}

TEST(Sudoku, RewardsOverwritingAgainButRefusesTheSameDigitTwice) {
  Sudoku game({}, 10015);  // 1 and 4 are both legal at (3,2)
  const double first = game.step("1 at 3,2").reward.value;
  EXPECT_FALSE(game.step("1 at 3,2").valid);
  EXPECT_EQ(first + game.step("4 at 3,2").reward.value, 1.5) << "one of the two is the solution's";
  EXPECT_EQ(game.step("1 at 3,2").reward.value, first);
}

TEST(Sudoku, TestsItsStepCapOnlyAfterALegalPlacement) {
  Sudoku game({.max_steps = 2}, 142);
  EXPECT_FALSE(game.step("x").done);
  EXPECT_FALSE(game.step("x").done);
  EXPECT_FALSE(game.step("x").done);
  const GameStep last = game.step("2,2,2");
  EXPECT_TRUE(last.valid && last.done);
  EXPECT_FALSE(last.success);
}

TEST(Sudoku, LeavesSymbolsAwayWithoutEmoji) {
  Sudoku game({.emoji = false}, 142);
  EXPECT_NE(game.step("x").observation.find("\n\nInvalid action format: Could not"), std::string::npos);
  EXPECT_NE(game.observation().find("\n\nVALID NUMBERS FOR EMPTY CELLS:\n"), std::string::npos);
}

TEST(Sudoku, MakesSolvableGridsOfNineDigits) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Sudoku game({.grid_size = 9, .difficulty = "hard"}, seed);
    EXPECT_TRUE(is_solved(game.puzzle().solution));
    EXPECT_FALSE(is_solved(game.grid()));
  }
}

}  // namespace
}  // namespace carnot
