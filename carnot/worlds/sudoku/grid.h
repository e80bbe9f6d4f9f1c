// worlds/sudoku/grid.h -- Sudoku grids: rules, generation, and the picture that models see.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// Digits row by row; 0 is empty. The side is a square number, boxes are its root wide.
struct SudokuGrid {
  int size = 0;
  int box = 0;
  std::vector<int> digits{};

  int& at(int row, int column) { return digits[row * size + column]; }
  int at(int row, int column) const { return digits[row * size + column]; }
  bool operator==(const SudokuGrid&) const = default;
};

SudokuGrid empty_sudoku(int size);

/// Where a digit already is. A cell's own digit counts, so that placing it again is a conflict.
struct SudokuConflicts {
  bool row = false;
  bool column = false;
  bool box = false;
  bool any() const { return row || column || box; }
};
SudokuConflicts conflicts(const SudokuGrid& grid, int row, int column, int digit);

/// Digits without a conflict, ascending; none for a filled cell.
std::vector<int> valid_numbers(const SudokuGrid& grid, int row, int column);

/// Cells (indices) that hold the same digit as another cell of their row, column or box.
std::vector<int> conflicting_cells(const SudokuGrid& grid);

/// Full, and no cell conflicts.
bool is_solved(const SudokuGrid& grid);

struct SudokuPuzzle {
  SudokuGrid start{};
  SudokuGrid solution{};  ///< the one it was made from; there may be others
};

/// A random full grid, of which `blanks` cells are emptied. Equal seeds give RAGEN's puzzle.
SudokuPuzzle generate_sudoku(int size, int blanks, std::uint64_t seed);

/// Rows of digits, '\n' between: the notation of published puzzles.
std::string digits_text(const SudokuGrid& grid);

/// The rows as models see them: "[3]" given (in `start`), " 3 " placed, "*3*" conflicting, " . " empty.
std::string picture(const SudokuGrid& grid, const SudokuGrid& start);

}  // namespace carnot
