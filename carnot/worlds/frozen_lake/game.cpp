#include "carnot/worlds/frozen_lake/game.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/worlds/ragen/action_table.h"

namespace carnot {
namespace {

int moved(int size, int from, int action) {
  const int row = from / size, column = from % size;
  switch (action) {
    case 0: return row * size + std::max(column - 1, 0);
    case 1: return std::min(row + 1, size - 1) * size + column;
    case 2: return row * size + std::min(column + 1, size - 1);
    default: return std::max(row - 1, 0) * size + column;
  }
}

bool reachable(const FrozenLakeMap& map, int start, int goal) {
  std::vector<bool> seen(map.cells.size(), false);
  std::vector<int> frontier = {start};
  seen[start] = true;
  while (!frontier.empty()) {
    const int cell = frontier.back();
    frontier.pop_back();
    if (cell == goal) return true;
    for (int action = 0; action < 4; ++action) {
      const int next = moved(map.size, cell, action);
      const auto at = static_cast<std::size_t>(next);
      if (seen[at] || map.cells[at] == 'H') continue;
      seen[at] = true;
      frontier.push_back(next);
    }
  }
  return false;
}

int find_cell(const FrozenLakeMap& map, char kind) { return static_cast<int>(map.cells.find(kind)); }

}  // namespace

void FrozenLakeOptions::fields(FieldVisitor& visit) {
  visit.field("size", size, "rows, and columns, of the lake", between(2, 32));
  visit.field("p", p, "chance that a cell is frozen", between(0, 1));
  visit.field("success_rate", success_rate, "chance to move where one means to", between(0, 1));
  visit.field("is_slippery", is_slippery, "whether moves may slip to a side at all");
  observation_format_field(visit, observation_format);
}

FrozenLakeMap generate_frozen_lake(const FrozenLakeOptions& options, std::uint64_t seed) {
  NumpyGenerator random(seed);
  const auto side = static_cast<std::uint32_t>(options.size);
  const std::array<double, 2> chances = {options.p, 1 - options.p};
  const auto draw_cell = [&] {
    const int row = static_cast<int>(random.integers(side));
    return row * options.size + static_cast<int>(random.integers(side));
  };
  while (true) {
    FrozenLakeMap map{.size = options.size, .cells = std::string(side * side, 'F')};
    for (char& cell : map.cells) cell = random.choice(chances) == 0 ? 'F' : 'H';
    const int start = draw_cell(), goal = draw_cell();
    if (start == goal) continue;
    map.cells[start] = 'S';
    map.cells[goal] = 'G';
    if (reachable(map, start, goal)) return map;
  }
}

FrozenLakeMoves frozen_lake_moves(const FrozenLakeOptions& options, int size, int from, int action) {
  const double side = options.is_slippery ? (1.0 - options.success_rate) / 2.0 : 0.0;
  const double straight = options.is_slippery ? options.success_rate : 1.0;
  return {
      .chances = {side, straight, side},
      .ends = {moved(size, from, (action + 3) % 4), moved(size, from, action), moved(size, from, (action + 1) % 4)}};
}

FrozenLake::FrozenLake(const FrozenLakeOptions& options, std::uint64_t seed)
    : options_(options), map_(generate_frozen_lake(options, seed)), slips_(seed), player_(find_cell(map_, 'S')) {
  slips_.random();  // Gymnasium draws the start cell, of which there is only one
  std::vector<int> holes;
  for (std::size_t i = 0; i < map_.cells.size(); ++i)
    if (map_.cells[i] == 'H') holes.push_back(static_cast<int>(i));
  above_player_ = coordinate_head(map_.size, map_.size) + coordinate_line("Start", {player_}, map_.size) +
                  coordinate_line("Goal", {find_cell(map_, 'G')}, map_.size);
  below_player_ = coordinate_line("Holes", holes, map_.size) + std::string(kGridMapHeading);
}

GameStep FrozenLake::step(std::string_view action) {
  CARNOT_CHECK(!done_, "the game is over");
  const auto index = find_action(kFrozenLakeActions, action);
  if (!index) return {.observation = observation(), .reward = {.value = 0, .integer = true}};

  const auto moves = frozen_lake_moves(options_, map_.size, player_, *index);
  const double drawn = slips_.random();
  std::size_t slip = 0;
  double cumulative = moves.chances[0];
  while (slip < 2 && cumulative <= drawn) cumulative += moves.chances[++slip];
  if (cumulative <= drawn) slip = 0;  // rounding left the sum short of the draw: Gymnasium takes the first

  const int before = player_;
  player_ = moves.ends[slip];
  const bool won = cell() == 'G';
  done_ = won || cell() == 'H';
  return {.observation = observation(),
          .reward = {.value = won ? 1.0 : 0.0, .integer = true},
          .done = done_,
          .success = won,
          .effective = player_ != before,
          .valid = true};
}

std::string FrozenLake::board_json() const {
  std::string text;
  for (std::size_t i = 0; i < map_.cells.size(); ++i) {
    if (i > 0 && i % static_cast<std::size_t>(map_.size) == 0) text += '\n';
    text += map_.cells[i];
  }
  return json_text(text);
}

std::string FrozenLake::observation() const {
  if (options_.observation_format == ObservationFormat::Grid) return grid();
  std::string text;
  text.reserve(above_player_.size() + below_player_.size() + 32 + 2 * map_.cells.size());
  text += above_player_;
  text += cell() == 'G' ? "Player on goal: " : cell() == 'H' ? "Player in hole: " : "Player: ";
  text += coordinate(player_ / map_.size, player_ % map_.size);
  text += '\n';
  text += below_player_;
  append_map(text);
  return text;
}

std::string FrozenLake::grid() const {
  std::string text;
  append_map(text);
  return text;
}

void FrozenLake::append_map(std::string& text) const {
  enum Symbol : std::uint8_t { kFrozen, kHole, kGoal, kPlayer, kPlayerInHole, kPlayerOnGoal };
  static constexpr std::array<Glyph, 6> kGlyphs = {Glyph("_"), Glyph("O"), Glyph("G"),
                                                   Glyph("P"), Glyph("X"), Glyph("√")};
  const auto bare = [](char kind) { return kind == 'H' ? kHole : kind == 'G' ? kGoal : kFrozen; };
  std::array<std::uint8_t, kMaxGridCells> drawn;
  for (std::size_t i = 0; i < map_.cells.size(); ++i) drawn[i] = bare(map_.cells[i]);
  drawn[player_] = static_cast<std::uint8_t>(bare(cell()) + kPlayer);
  append_grid(text, {drawn.data(), map_.cells.size()}, map_.size, kGlyphs);
}

}  // namespace carnot
