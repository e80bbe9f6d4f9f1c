#include "carnot/worlds/ragen/factory.h"

#include "carnot/worlds/sudoku/game.h"

namespace carnot {
namespace {

constexpr std::string_view kSudokuInstruction =
    "You are solving a 4x4 Sudoku puzzle. Fill in the grid so that every row, column, and 2x2 box contains the numbers "
    "1-4 without repetition.\n"
    "Initial cells are shown in [brackets] and cannot be modified. Empty cells are shown as dots (.).\n"
    "Place numbers one at a time using the format: <answer>place 3 at row 1 col 2</answer> or <answer>1,2,3</answer>\n"
    "The environment will provide feedback on valid/invalid moves and show conflicts if any occur.\n";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string placement_text(int row, int column, int digit) {
  return "place " + std::to_string(digit) + " at row " + std::to_string(row + 1) + " col " + std::to_string(column + 1);
}

class SudokuFactory : public RagenFactory {
 public:
  SudokuFactory()
      : RagenFactory({.max_turns = 8, .max_actions_per_turn = 2, .max_actions = 10, .max_response_words = 150}) {}

  Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const override {
    return std::unique_ptr<Game>(std::make_unique<Sudoku>(options_, seed));
  }

  // The solution's digits in reading order, first where no earlier placement is in the way.
  std::vector<std::string> plan(const Game& game, int, int count) const override {
    const auto& sudoku = dynamic_cast<const Sudoku&>(game);
    SudokuGrid grid = sudoku.grid();
    const SudokuGrid& solution = sudoku.puzzle().solution;
    std::vector<std::string> actions;
    for (int cell = 0; cell < grid.size * grid.size && static_cast<int>(actions.size()) < count; ++cell) {
      const int row = cell / grid.size, column = cell % grid.size, digit = solution.at(row, column);
      if (grid.at(row, column) == digit || conflicts(grid, row, column, digit).any()) continue;
      grid.at(row, column) = digit;
      actions.push_back(placement_text(row, column, digit));
      cell = -1;  // a corrected cell may free an earlier one
    }
    return actions;
  }

  std::string careless_action(const Game&, RandomStream& random) const override {
    const auto side = static_cast<std::uint64_t>(options_.grid_size);
    const int row = static_cast<int>(random.below(side)), column = static_cast<int>(random.below(side));
    return placement_text(row, column, 1 + static_cast<int>(random.below(side)));
  }

  std::string noted(const Game& game) const override {
    const auto& grid = dynamic_cast<const Sudoku&>(game).grid();
    std::string text = "Empty";
    for (int row = 0; row < grid.size; ++row)
      for (int column = 0; column < grid.size; ++column)
        if (grid.at(row, column) == 0) text += " (" + std::to_string(row + 1) + "," + std::to_string(column + 1) + ")";
    return text + ".";
  }

 protected:
  void game_fields(FieldVisitor& visit) override { options_.fields(visit); }

  RagenText text() const override {
    std::string instruction(kSudokuInstruction);
    if (options_.grid_size == 9) {
      instruction = replaced(instruction, "4x4", "9x9");
      instruction = replaced(instruction, "2x2", "3x3");
      instruction = replaced(instruction, "1-4", "1-9");
    }
    return {.instruction = instruction};
  }

  Status check() const override {
    if (options_.grid_size == 4 || options_.grid_size == 9) return Done{};
    return Error{"env.grid_size: expected 4 or 9, got " + std::to_string(options_.grid_size)};
  }

 private:
  SudokuOptions options_;
};

}  // namespace

std::unique_ptr<EnvironmentFactory> make_sudoku() { return std::make_unique<SudokuFactory>(); }

}  // namespace carnot
