#include "carnot/worlds/sudoku/grid.h"

#include <algorithm>
#include <numeric>

#include "carnot/core/base/check.h"
#include "carnot/worlds/python/python_random.h"

namespace carnot {
namespace {

// Backtracking over empty cells in reading order, candidates shuffled once a visit.
bool fill(SudokuGrid& grid, PythonRandom& random) {
  const auto empty = std::find(grid.digits.begin(), grid.digits.end(), 0);
  if (empty == grid.digits.end()) return true;
  const int cell = static_cast<int>(empty - grid.digits.begin());
  std::vector<int> candidates(grid.size);
  std::iota(candidates.begin(), candidates.end(), 1);
  random.shuffle(candidates);
  for (const int digit : candidates) {
    if (conflicts(grid, cell / grid.size, cell % grid.size, digit).any()) continue;
    *empty = digit;
    if (fill(grid, random)) return true;
    *empty = 0;
  }
  return false;
}

}  // namespace

SudokuGrid empty_sudoku(int size) {
  int box = 1;
  while (box * box < size) ++box;
  CARNOT_CHECK_EQ(box * box, size);
  return {.size = size, .box = box, .digits = std::vector<int>(size * size, 0)};
}

SudokuConflicts conflicts(const SudokuGrid& grid, int row, int column, int digit) {
  SudokuConflicts found;
  const int top = row / grid.box * grid.box, left = column / grid.box * grid.box;
  for (int i = 0; i < grid.size; ++i) {
    found.row |= grid.at(row, i) == digit;
    found.column |= grid.at(i, column) == digit;
    found.box |= grid.at(top + i / grid.box, left + i % grid.box) == digit;
  }
  return found;
}

std::vector<int> valid_numbers(const SudokuGrid& grid, int row, int column) {
  std::vector<int> valid;
  if (grid.at(row, column) != 0) return valid;
  for (int digit = 1; digit <= grid.size; ++digit)
    if (!conflicts(grid, row, column, digit).any()) valid.push_back(digit);
  return valid;
}

std::vector<int> conflicting_cells(const SudokuGrid& grid) {
  std::vector<int> cells;
  SudokuGrid others = grid;
  for (int cell = 0; cell < grid.size * grid.size; ++cell) {
    int& digit = others.digits[cell];
    const int held = digit;
    if (held == 0) continue;
    digit = 0;
    if (conflicts(others, cell / grid.size, cell % grid.size, held).any()) cells.push_back(cell);
    digit = held;
  }
  return cells;
}

bool is_solved(const SudokuGrid& grid) {
  return std::find(grid.digits.begin(), grid.digits.end(), 0) == grid.digits.end() && conflicting_cells(grid).empty();
}

SudokuPuzzle generate_sudoku(int size, int blanks, std::uint64_t seed) {
  PythonRandom random(seed);
  SudokuPuzzle puzzle;
  puzzle.solution = empty_sudoku(size);
  fill(puzzle.solution, random);
  puzzle.start = puzzle.solution;
  std::vector<int> cells(puzzle.solution.digits.size());
  std::iota(cells.begin(), cells.end(), 0);
  random.shuffle(cells);
  cells.resize(blanks);
  for (const int cell : cells) puzzle.start.digits[cell] = 0;
  return puzzle;
}

std::string digits_text(const SudokuGrid& grid) {
  std::string text;
  for (int row = 0; row < grid.size; ++row) {
    if (row > 0) text += '\n';
    for (int column = 0; column < grid.size; ++column) text += std::to_string(grid.at(row, column));
  }
  return text;
}

std::string picture(const SudokuGrid& grid, const SudokuGrid& start) {
  const auto clashing = conflicting_cells(grid);
  std::string text;
  for (int row = 0; row < grid.size; ++row) {
    if (row > 0) text += '\n';
    if (row > 0 && row % grid.box == 0) text += std::string(grid.size * 3 + grid.box - 1, '-') + "\n";
    for (int column = 0; column < grid.size; ++column) {
      if (column > 0 && column % grid.box == 0) text += "| ";
      const int cell = row * grid.size + column, digit = grid.at(row, column);
      const bool clashes = std::find(clashing.begin(), clashing.end(), cell) != clashing.end();
      if (digit == 0)
        text += " . ";
      else if (clashes)
        text += "*" + std::to_string(digit) + "*";
      else if (start.at(row, column) != 0)
        text += "[" + std::to_string(digit) + "]";
      else
        text += " " + std::to_string(digit) + " ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
  }
  return text;
}

}  // namespace carnot
