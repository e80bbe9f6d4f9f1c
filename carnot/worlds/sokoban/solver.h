// worlds/sokoban/solver.h -- the shortest solution of a Sokoban room.
#pragma once

#include <cstddef>
#include <vector>

#include "carnot/worlds/sokoban/room.h"

namespace carnot {

/// Shortest sequence of moves that solves the room from here, by breadth-first search over at most `max_states` states;
/// empty if it found none of at most `max_moves` moves.
std::vector<SokobanMove> solve_sokoban(const SokobanRoom& room, int max_moves, std::size_t max_states = 1000000);

}  // namespace carnot
