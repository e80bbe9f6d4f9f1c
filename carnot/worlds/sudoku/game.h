// worlds/sudoku/game.h -- Sudoku with 4 (or 9) digits, one placement a step. Puzzles, feedback and rewards equal
// RAGEN's.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/result.h"
#include "carnot/core/env/game.h"
#include "carnot/worlds/sudoku/grid.h"

namespace carnot {

/// A placement, all three from 1.
struct SudokuPlacement {
  int row = 0;
  int column = 0;
  int digit = 0;
};

/// Reads "place 3 at row 1 col 2", "place 3 at (1,2)", "3 at 1,2", "(1,2,3)", "1,2,3", anywhere in the text. Where the
/// text holds "place" or "at" anywhere, the number comes first; else last. The error is shown to the model.
Result<SudokuPlacement> parse_placement(std::string_view text, int size);

/// The line of a page about an empty cell: "  - (1,3): [2, 4]\n"; empty if the cell is filled or takes no number.
std::string valid_numbers_line(const SudokuGrid& grid, int cell);

struct SudokuOptions {
  int grid_size = 4;
  std::string difficulty = "easy";  ///< easy, medium, hard: 40, 50, 60 % of the cells are blank
  int max_steps = 16;
  std::string render_format = "with_feedback";  ///< with_feedback, or grid: the rows alone
  bool show_conflicts = true;
  bool show_valid_numbers = true;
  bool emoji = true;  ///< feedback lines begin with a symbol

  void fields(FieldVisitor& visit);
};

/// 1 for the solution's digit, 0.5 for another legal one, 10 more when the grid is complete; -0.1 for what is refused.
class Sudoku : public Game {
 public:
  Sudoku(const SudokuOptions& options, std::uint64_t seed);

  std::string board_json() const override;
  std::string observation() const override;
  GameStep step(std::string_view action) override;
  std::string anchor() const override { return digits_text(grid_); }
  std::unique_ptr<Game> clone() const override { return std::make_unique<Sudoku>(*this); }

  const SudokuPuzzle& puzzle() const { return puzzle_; }
  const SudokuGrid& grid() const { return grid_; }

 private:
  GameStep refuse(std::string feedback);
  GameStep place(const SudokuPlacement& placement);
  std::string conflict_feedback(const SudokuPlacement& placement) const;
  std::string mark(std::string_view symbol) const;

  SudokuOptions options_;
  SudokuPuzzle puzzle_;
  SudokuGrid grid_;
  std::string feedback_;
  int steps_ = 0;
  bool done_ = false;
};

}  // namespace carnot
