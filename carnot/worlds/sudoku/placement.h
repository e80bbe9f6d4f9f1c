// worlds/sudoku/placement.h -- what a Sudoku player may write for a placement.
#pragma once

#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// A placement, all three from 1.
struct SudokuPlacement {
  int row = 0;
  int column = 0;
  int digit = 0;
};

/// Reads "place 3 at row 1 col 2", "place 3 at (1,2)", "3 at 1,2", "(1,2,3)", "1,2,3", anywhere in the text. Where the
/// text holds "place" or "at" anywhere, the number comes first; else last. The error is what the model is told.
Result<SudokuPlacement> parse_placement(std::string_view text, int size);

}  // namespace carnot
