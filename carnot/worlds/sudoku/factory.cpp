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
  return std::to_string(row + 1) + "," + std::to_string(column + 1) + "," + std::to_string(digit);
}

std::string placement_text(const SudokuGrid& solution, int cell) {
  return placement_text(cell / solution.size, cell % solution.size, solution.digits[cell]);
}

/// The first cells that can take their solution's digit and no other; at most `count`.
std::vector<int> certain_cells(const SudokuGrid& grid, const SudokuGrid& solution, int count) {
  std::vector<int> cells;
  for (int cell = 0; cell < grid.size * grid.size && std::ssize(cells) < count; ++cell)
    if (valid_numbers(grid, cell / grid.size, cell % grid.size) == std::vector{solution.digits[cell]})
      cells.push_back(cell);
  return cells;
}

/// The first cell that can take its solution's digit, or holds another. -1 where every cell is right or blocked by a
/// wrong one.
int possible_cell(const SudokuGrid& grid, const SudokuGrid& solution) {
  for (int cell = 0; cell < grid.size * grid.size; ++cell) {
    const int digit = solution.digits[cell];
    if (grid.digits[cell] != digit && !conflicts(grid, cell / grid.size, cell % grid.size, digit).any()) return cell;
  }
  return -1;
}

class SudokuFactory : public RagenFactory {
 public:
  SudokuFactory()
      : RagenFactory({.max_turns = 8, .max_actions_per_turn = 2, .max_actions = 10, .max_response_words = 150}) {}

  Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const override {
    return std::unique_ptr<Game>(std::make_unique<Sudoku>(options_, seed));
  }

  /// The certain cells of the page; without any, one that may be filled.
  std::vector<std::string> plan(const Game& game, int, int count) const override {
    const auto& sudoku = dynamic_cast<const Sudoku&>(game);
    const SudokuGrid& solution = sudoku.puzzle().solution;
    std::vector<int> cells = certain_cells(sudoku.grid(), solution, count);
    if (const int cell = possible_cell(sudoku.grid(), solution); cells.empty() && cell >= 0) cells.push_back(cell);
    std::vector<std::string> actions;
    for (const int cell : cells) actions.push_back(placement_text(solution, cell));
    return actions;
  }

  std::string careless_action(const Game&, RandomStream& random) const override {
    const auto side = static_cast<std::uint64_t>(options_.grid_size);
    const int row = static_cast<int>(random.below(side)), column = static_cast<int>(random.below(side));
    return placement_text(row, column, 1 + static_cast<int>(random.below(side)));
  }

  /// The page's lines from the first empty cell to the last one that plan() fills.
  std::string noted(const Game& game) const override {
    const auto& sudoku = dynamic_cast<const Sudoku&>(game);
    const auto certain = certain_cells(sudoku.grid(), sudoku.puzzle().solution, budgets().max_actions_per_turn);
    if (certain.empty()) return "No cell is certain.";
    std::string text = "\n";
    for (int cell = 0; cell <= certain.back(); ++cell) text += valid_numbers_line(sudoku.grid(), cell);
    return text;
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
