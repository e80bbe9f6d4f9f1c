// reference/sokoban_reverse_play.h -- the slow reference of worlds/sokoban/reverse_play.h: whole boards, copied at
// every move.
#pragma once

#include <utility>
#include <vector>

namespace carnot::reference {

/// Cells as published code numbers them: 0 wall, 1 floor, 2 target, 3 box that was pulled, 4 box that was not, 5
/// player.
using SokobanBoard = std::vector<std::vector<int>>;

struct SokobanStart {
  SokobanBoard board{};
  int displacement = 0;
};

/// The best board of the depth-first search from `board`; `floor` is the same room without boxes and player.
SokobanStart sokoban_reverse_play(const SokobanBoard& board, const SokobanBoard& floor, int depth);

}  // namespace carnot::reference
