#include "carnot/worlds/sokoban/reverse_play.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "carnot/core/base/random.h"
#include "reference/sokoban_reverse_play.h"

namespace carnot {
namespace {

// A room with random inner walls, all boxes on their targets, and the player somewhere free.
SokobanRoom random_solved_room(RandomStream& random, int boxes) {
  SokobanRoom room{.rows = 5 + static_cast<int>(random.below(3)), .columns = 5 + static_cast<int>(random.below(3))};
  std::vector<int> free;
  for (int cell = 0; cell < room.rows * room.columns; ++cell) {
    const int row = cell / room.columns, column = cell % room.columns;
    const bool border = row == 0 || column == 0 || row == room.rows - 1 || column == room.columns - 1;
    const bool wall = border || random.chance(0.2);
    room.cells.push_back(wall ? SokobanCell::Wall : SokobanCell::Floor);
    if (!wall) free.push_back(cell);
  }
  if (static_cast<int>(free.size()) <= boxes + 1) return random_solved_room(random, boxes);
  random.shuffle(free);
  room.player = free[0];
  room.boxes.assign(free.begin() + 1, free.begin() + 1 + boxes);
  std::sort(room.boxes.begin(), room.boxes.end());
  for (const int box : room.boxes) room.cells[box] = SokobanCell::Target;
  return room;
}

reference::SokobanBoard board_of(const SokobanRoom& room, bool with_pieces, int box_number) {
  reference::SokobanBoard board(room.rows);
  for (int cell = 0; cell < room.rows * room.columns; ++cell) {
    int number = static_cast<int>(room.at(cell));
    if (with_pieces && std::count(room.boxes.begin(), room.boxes.end(), cell) > 0) number = box_number;
    if (with_pieces && cell == room.player) number = 5;
    board[cell / room.columns].push_back(number);
  }
  return board;
}

TEST(SokobanReversePlay, FindsTheStartThatTheSlowReferenceFinds) {
  RandomStream random(5);
  for (int trial = 0; trial < 60; ++trial) {
    const int boxes = 1 + trial % 3, depth = 2 + static_cast<int>(random.below(boxes == 1 ? 60 : 12));
    const SokobanRoom room = random_solved_room(random, boxes);
    const ReversePlay fast = reverse_play(room, depth);
    auto slow = reference::sokoban_reverse_play(board_of(room, true, 4), board_of(room, false, 4), depth);
    for (auto& row : slow.board) std::replace(row.begin(), row.end(), 3, 4);
    EXPECT_EQ(fast.displacement, slow.displacement);
    EXPECT_EQ(board_of(fast.room, true, 4), slow.board) << boxes << " boxes, depth " << depth;
  }
}

}  // namespace
}  // namespace carnot
