// worlds/sokoban/room.h -- Sokoban rooms, made as gym-sokoban makes them: the same seed gives the same room.
//
// A room is dug by a random walk, boxes are put on targets, and playing backwards (pulling) finds the start that is
// hardest to undo (Weber et al. 2017, "Imagination-augmented agents", appendix on Sokoban levels).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

enum class SokobanCell : std::uint8_t { Wall, Floor, Target };

struct SokobanRoom {
  int rows = 0;
  int columns = 0;
  std::vector<SokobanCell> cells{};  ///< row by row
  std::vector<int> boxes{};          ///< cell indices; ascending in a new room
  int player = 0;                    ///< cell index

  SokobanCell at(int cell) const { return cells[cell]; }
};

enum class SokobanMove : std::uint8_t { Up, Down, Left, Right };
inline constexpr int kSokobanMoves = 4;

/// Moves the player by one cell, pushing one box where it may. False, and nothing moves, where the way is blocked.
bool play_move(SokobanRoom& room, SokobanMove move);

int boxes_on_targets(const SokobanRoom& room);

struct SokobanRoomOptions {
  int rows = 6;
  int columns = 6;
  int boxes = 1;
  int search_depth = 300;  ///< of the backward search
};

inline constexpr int kMaxSokobanSide = 16;
inline constexpr int kMaxSokobanBoxes = 13;

/// The room of exactly this seed; empty if generation fails for it.
std::optional<SokobanRoom> generate_sokoban_room(const SokobanRoomOptions& options, std::uint64_t seed);

/// As above, but a failing seed s is followed by the first draw of numpy's RandomState(s mod 2^32), up to 32 times.
Result<SokobanRoom> make_sokoban_room(const SokobanRoomOptions& options, std::uint64_t seed);

}  // namespace carnot
