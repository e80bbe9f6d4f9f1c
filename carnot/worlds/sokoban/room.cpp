#include "carnot/worlds/sokoban/room.h"

#include <algorithm>
#include <array>
#include <string>

#include "carnot/worlds/python/numpy_random.h"
#include "carnot/worlds/python/python_random.h"
#include "carnot/worlds/sokoban/reverse_play.h"

namespace carnot {
namespace {

constexpr double kChangeDirection = 0.35;
constexpr int kTries = 4;
constexpr int kMaxReseeds = 32;

struct Direction {
  int row;
  int column;
};

// Relative cells (row, column) of the five stamps that the walk digs with.
using Stamp = std::vector<Direction>;
const std::vector<Stamp>& stamps() {
  static const std::vector<Stamp> all = {
      {{0, -1}, {0, 0}, {0, 1}},          {{-1, 0}, {0, 0}, {1, 0}}, {{0, -1}, {0, 0}, {1, 0}},
      {{0, -1}, {0, 0}, {1, -1}, {1, 0}}, {{0, 0}, {0, 1}, {1, 0}},
  };
  return all;
}

SokobanRoom dig(const SokobanRoomOptions& options, PythonRandom& random) {
  static constexpr std::array<Direction, 4> kDirections = {{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}};
  SokobanRoom room{.rows = options.rows, .columns = options.columns};
  room.cells.assign(options.rows * options.columns, SokobanCell::Wall);
  // random.sample(items, 1) draws as choice does.
  Direction direction = random.choice(std::span<const Direction>(kDirections));
  int row = random.randint(1, options.rows - 1), column = random.randint(1, options.columns - 1);
  const int steps = static_cast<int>(1.7 * (options.rows + options.columns));
  for (int step = 0; step < steps; ++step) {
    if (random.random() < kChangeDirection) direction = random.choice(std::span<const Direction>(kDirections));
    row = std::clamp(row + direction.row, 1, options.rows - 2);
    column = std::clamp(column + direction.column, 1, options.columns - 2);
    for (const auto& dug : random.choice(std::span<const Stamp>(stamps()))) {
      const int r = row + dug.row, c = column + dug.column;
      const bool border = r == 0 || c == 0 || r == options.rows - 1 || c == options.columns - 1;
      if (!border) room.cells[r * options.columns + c] = SokobanCell::Floor;
    }
  }
  return room;
}

// Player, then a target with its box for each box, on free floor cells. False if there are too few.
bool place(SokobanRoom& room, int boxes, NumpyRandomState& random) {
  std::vector<int> free;
  for (std::size_t i = 0; i < room.cells.size(); ++i)
    if (room.cells[i] == SokobanCell::Floor) free.push_back(static_cast<int>(i));
  if (static_cast<int>(free.size()) <= boxes + 1) return false;
  const auto take = [&] {
    const auto at = free.begin() + random.randint(free.size());
    const int cell = *at;
    free.erase(at);
    return cell;
  };
  room.player = take();
  for (int box = 0; box < boxes; ++box) {
    room.boxes.push_back(take());
    room.cells[room.boxes.back()] = SokobanCell::Target;
  }
  std::sort(room.boxes.begin(), room.boxes.end());
  return true;
}

// A few random steps, so that the player is not always where the last pull ended.
void stroll(SokobanRoom& room, int displacement, PythonRandom& random) {
  constexpr int kMaxMoves = 3;
  if (random.random() > (displacement == 1 ? 0.8 : 0.5)) return;
  std::vector<int> visited = {room.player};
  for (int moves = 1;; ++moves) {
    std::vector<int> open;
    for (const int step : {-room.columns, room.columns, -1, 1}) {
      const int next = room.player + step;
      const auto on = [&](const std::vector<int>& cells) {
        return std::find(cells.begin(), cells.end(), next) != cells.end();
      };
      if (room.at(next) != SokobanCell::Wall && !on(room.boxes) && !on(visited)) open.push_back(next);
    }
    if (open.empty()) return;
    room.player = random.choice(std::span<const int>(open));
    visited.push_back(room.player);
    if (moves == kMaxMoves || random.random() > 0.5) return;
  }
}

}  // namespace

bool play_move(SokobanRoom& room, SokobanMove move) {
  const std::array<int, kSokobanMoves> steps = {-room.columns, room.columns, -1, 1};
  const int step = steps[static_cast<std::size_t>(move)];
  const int next = room.player + step, behind = next + step;
  if (room.at(next) == SokobanCell::Wall) return false;
  const auto box = std::find(room.boxes.begin(), room.boxes.end(), next);
  if (box != room.boxes.end()) {
    const bool blocked = room.at(behind) == SokobanCell::Wall ||
                         std::find(room.boxes.begin(), room.boxes.end(), behind) != room.boxes.end();
    if (blocked) return false;
    *box = behind;
  }
  room.player = next;
  return true;
}

int boxes_on_targets(const SokobanRoom& room) {
  return static_cast<int>(std::count_if(room.boxes.begin(), room.boxes.end(),
                                        [&](int box) { return room.at(box) == SokobanCell::Target; }));
}

std::optional<SokobanRoom> generate_sokoban_room(const SokobanRoomOptions& options, std::uint64_t seed) {
  PythonRandom walk(seed);
  NumpyRandomState placement(static_cast<std::uint32_t>(seed));
  for (int attempt = 0; attempt < kTries; ++attempt) {
    SokobanRoom room = dig(options, walk);
    if (!place(room, options.boxes, placement)) return std::nullopt;
    ReversePlay found = reverse_play(room, options.search_depth);
    if (found.displacement == 0) continue;
    stroll(found.room, found.displacement, walk);
    return found.room;
  }
  return std::nullopt;
}

Result<SokobanRoom> make_sokoban_room(const SokobanRoomOptions& options, std::uint64_t seed) {
  std::uint64_t next = seed;
  for (int reseeds = 0; reseeds <= kMaxReseeds; ++reseeds) {
    if (auto room = generate_sokoban_room(options, next)) return *std::move(room);
    next = NumpyRandomState(static_cast<std::uint32_t>(next)).randint(std::uint64_t{1} << 32);
  }
  return Error{"sokoban: no room of " + std::to_string(options.rows) + " x " + std::to_string(options.columns) +
               " with " + std::to_string(options.boxes) + " boxes came out of seed " + std::to_string(seed) + " and " +
               std::to_string(kMaxReseeds) + " seeds after it; make the room larger, or the search deeper"};
}

}  // namespace carnot
