#include <algorithm>
#include <string>
#include <unordered_map>

#include "carnot/env/sokoban.h"

namespace carnot {
namespace {

// Player and sorted boxes, a byte each.
using Board = std::string;

Board board_of(const SokobanRoom& room) {
  Board board(1 + room.boxes.size(), '\0');
  board[0] = static_cast<char>(room.player);
  for (std::size_t i = 0; i < room.boxes.size(); ++i) board[i + 1] = static_cast<char>(room.boxes[i]);
  std::sort(board.begin() + 1, board.end(), [](char a, char b) {
    return static_cast<unsigned char>(a) < static_cast<unsigned char>(b);
  });
  return board;
}

int cell_of(char byte) { return static_cast<unsigned char>(byte); }

struct Visit {
  Board board{};
  int parent = -1;
  int move = -1;
  int depth = 0;
};

}  // namespace

std::vector<int> solve_sokoban(const SokobanRoom& room, int max_moves, std::size_t max_states) {
  std::vector<Visit> queue = {{.board = board_of(room)}};
  std::unordered_map<Board, bool> seen = {{queue[0].board, true}};
  for (std::size_t head = 0; head < queue.size() && queue.size() < max_states; ++head) {
    if (queue[head].depth == max_moves) break;
    for (int move = 0; move < 4; ++move) {
      SokobanRoom next = room;
      next.player = cell_of(queue[head].board[0]);
      for (std::size_t i = 0; i < next.boxes.size(); ++i) next.boxes[i] = cell_of(queue[head].board[i + 1]);
      Sokoban game({}, std::move(next));
      if (!game.move(move)) continue;
      Board board = board_of(game.room());
      if (!seen.emplace(board, true).second) continue;
      queue.push_back({.board = std::move(board), .parent = static_cast<int>(head), .move = move,
                       .depth = queue[head].depth + 1});
      if (!game.solved()) continue;
      std::vector<int> moves;
      for (int at = static_cast<int>(queue.size()) - 1; queue[static_cast<std::size_t>(at)].parent >= 0;
           at = queue[static_cast<std::size_t>(at)].parent)
        moves.push_back(queue[static_cast<std::size_t>(at)].move);
      std::reverse(moves.begin(), moves.end());
      return moves;
    }
  }
  return {};
}

}  // namespace carnot
