#include "reference/sokoban_reverse_play.h"

#include <cstdlib>
#include <map>
#include <set>

namespace carnot::reference {
namespace {

using Cell = std::pair<int, int>;

struct Search {
  SokobanBoard floor;
  std::set<SokobanBoard> seen{};
  int best_score = -1;
  SokobanStart best{};

  static int& at(SokobanBoard& board, Cell cell) { return board[cell.first][cell.second]; }

  static int displacement(const std::map<Cell, Cell>& box_of_target) {
    int sum = 0;
    for (const auto& [target, box] : box_of_target)
      sum += std::abs(target.first - box.first) + std::abs(target.second - box.second);
    return sum;
  }

  void visit(SokobanBoard board, std::map<Cell, Cell> box_of_target, int swaps, Cell last_pulled, int depth) {
    --depth;
    if (depth <= 0 || seen.size() >= 300000 || !seen.insert(board).second) return;
    int visible_targets = 0;
    Cell player;
    for (std::size_t row = 0; row < board.size(); ++row)
      for (std::size_t column = 0; column < board[row].size(); ++column) {
        visible_targets += board[row][column] == 2 ? 1 : 0;
        if (board[row][column] == 5) player = {static_cast<int>(row), static_cast<int>(column)};
      }
    int score = swaps * displacement(box_of_target);
    if (visible_targets != static_cast<int>(box_of_target.size())) score = 0;
    if (score > best_score) {
      best_score = score;
      best = {board, displacement(box_of_target)};
    }
    for (const Cell& step : {Cell{-1, 0}, Cell{1, 0}, Cell{0, -1}, Cell{0, 1}}) {
      SokobanBoard next = board;
      auto next_boxes = box_of_target;
      Cell pulled = last_pulled;
      const Cell there = {player.first + step.first, player.second + step.second};
      const Cell behind = {player.first - step.first, player.second - step.second};
      if (at(next, there) == 1 || at(next, there) == 2) {
        at(next, player) = at(floor, player);
        at(next, there) = 5;
        if (at(next, behind) == 3 || at(next, behind) == 4) {
          at(next, player) = 3;
          at(next, behind) = at(floor, behind);
          for (auto& [target, box] : next_boxes)
            if (box == behind) {
              box = player;
              pulled = target;
              break;
            }
        }
      }
      visit(next, next_boxes, swaps + (pulled != last_pulled ? 1 : 0), pulled, depth);
    }
  }
};

}  // namespace

SokobanStart sokoban_reverse_play(const SokobanBoard& board, const SokobanBoard& floor, int depth) {
  Search search{.floor = floor};
  std::map<Cell, Cell> box_of_target;
  for (std::size_t row = 0; row < floor.size(); ++row)
    for (std::size_t column = 0; column < floor[row].size(); ++column)
      if (floor[row][column] == 2) {
        const Cell cell = {static_cast<int>(row), static_cast<int>(column)};
        box_of_target[cell] = cell;
      }
  search.visit(board, box_of_target, 0, {-1, -1}, depth);
  return search.best;
}

}  // namespace carnot::reference
