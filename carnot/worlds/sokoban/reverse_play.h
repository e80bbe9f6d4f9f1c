// worlds/sokoban/reverse_play.h -- plays a solved Sokoban room backwards to find a hard start.
#pragma once

#include "carnot/worlds/sokoban/room.h"

namespace carnot {

struct ReversePlay {
  SokobanRoom room{};    ///< boxes and player where the best start has them
  int displacement = 0;  ///< sum over boxes of the Manhattan distance to their target; 0: nothing found
};

/// Depth-first over all pulls from `solved` (every box on its target), `depth` moves deep, at most 300 000 boards. The
/// best board maximises (changes of the pulled box) x displacement, the first one found winning; boards with a target
/// covered, by a box or the player, score 0. REQUIRES: depth >= 2
ReversePlay reverse_play(const SokobanRoom& solved, int depth);

}  // namespace carnot
