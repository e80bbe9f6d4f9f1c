#include "carnot/worlds/sokoban/solver.h"

#include <algorithm>
#include <string>
#include <unordered_set>

namespace carnot {
namespace {

// Player and sorted boxes, a byte each.
using Board = std::string;

Board board_of(const SokobanRoom& room) {
  Board board(1 + room.boxes.size(), '\0');
  board[0] = static_cast<char>(room.player);
  for (std::size_t i = 0; i < room.boxes.size(); ++i) board[i + 1] = static_cast<char>(room.boxes[i]);
  std::sort(board.begin() + 1, board.end(),
            [](char a, char b) { return static_cast<unsigned char>(a) < static_cast<unsigned char>(b); });
  return board;
}

void put(const Board& board, SokobanRoom& room) {
  const auto cell_of = [](char byte) { return static_cast<int>(static_cast<unsigned char>(byte)); };
  room.player = cell_of(board[0]);
  for (std::size_t i = 0; i < room.boxes.size(); ++i) room.boxes[i] = cell_of(board[i + 1]);
}

struct Visit {
  Board board{};
  std::size_t parent = 0;
  SokobanMove move = SokobanMove::Up;
  int depth = 0;
};

std::vector<SokobanMove> moves_to(const std::vector<Visit>& queue, std::size_t at) {
  std::vector<SokobanMove> moves;
  for (; at != 0; at = queue[at].parent) moves.push_back(queue[at].move);
  std::reverse(moves.begin(), moves.end());
  return moves;
}

}  // namespace

std::vector<SokobanMove> solve_sokoban(const SokobanRoom& room, int max_moves, std::size_t max_states) {
  const int boxes = static_cast<int>(room.boxes.size());
  SokobanRoom next = room;
  std::vector<Visit> queue = {{.board = board_of(room)}};
  std::unordered_set<Board> seen = {queue[0].board};
  for (std::size_t head = 0; head < queue.size() && queue.size() < max_states; ++head) {
    const int depth = queue[head].depth + 1;
    if (depth > max_moves) break;
    for (int i = 0; i < kSokobanMoves; ++i) {
      const auto move = static_cast<SokobanMove>(i);
      put(queue[head].board, next);
      if (!play_move(next, move)) continue;
      Board board = board_of(next);
      if (!seen.insert(board).second) continue;
      queue.push_back({.board = std::move(board), .parent = head, .move = move, .depth = depth});
      if (boxes_on_targets(next) == boxes) return moves_to(queue, queue.size() - 1);
    }
  }
  return {};
}

}  // namespace carnot
