#include "carnot/worlds/sokoban/game.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/worlds/ragen/action_table.h"
#include "carnot/worlds/ragen/grid_text.h"

namespace carnot {
namespace {

enum Symbol : std::uint8_t { kWall, kEmpty, kTarget, kBoxOnTarget, kBox, kPlayer, kPlayerOnTarget };

constexpr Reward kStepReward{.value = -0.1};

}  // namespace

void SokobanOptions::fields(FieldVisitor& visit) {
  visit.field("dim_x", dim_x, "rows of the room, walls included", between(4, kMaxSokobanSide));
  visit.field("dim_y", dim_y, "columns of the room, walls included", between(4, kMaxSokobanSide));
  visit.field("num_boxes", num_boxes, "boxes, and targets", between(1, kMaxSokobanBoxes));
  visit.field("max_steps", max_steps, "steps after which the game ends unsolved", between(1, kMaxEpisodeSteps));
  visit.field("search_depth", search_depth, "moves that the room generator plays backwards", between(2, 5000));
  observation_format_field(visit, observation_format);
  visit.field("letter_symbols", letter_symbols, "draw the map with W . G C B A @ instead of # _ O √ X P S");
}

SokobanRoomOptions SokobanOptions::room() const {
  return {.rows = dim_x, .columns = dim_y, .boxes = num_boxes, .search_depth = search_depth};
}

std::array<CellSymbol, 7> sokoban_symbols(bool letters) {
  std::array<CellSymbol, 7> symbols = {{{"#", "wall"},
                                        {"_", "empty"},
                                        {"O", "target"},
                                        {"√", "box on target"},
                                        {"X", "box"},
                                        {"P", "player"},
                                        {"S", "player on target"}}};
  constexpr std::array<std::string_view, 7> kLetters = {"W", ".", "G", "C", "B", "A", "@"};
  if (letters)
    for (std::size_t i = 0; i < symbols.size(); ++i) symbols[i].symbol = kLetters[i];
  return symbols;
}

Sokoban::Sokoban(const SokobanOptions& options, SokobanRoom room) : options_(options), room_(std::move(room)) {
  const auto symbols = sokoban_symbols(options.letter_symbols);
  for (std::size_t i = 0; i < symbols.size(); ++i) glyphs_[i] = Glyph(symbols[i].symbol);
  board_ = grid();
}

std::string Sokoban::board_json() const { return json_text(board_); }

GameStep Sokoban::step(std::string_view action) {
  CARNOT_CHECK(!done_, "the game is over");
  const auto index = find_action(kSokobanActions, action);
  if (!index) return {.observation = observation()};
  const int before = boxes_on_targets(room_);
  GameStep result{.reward = kStepReward, .valid = true};
  result.effective = play_move(room_, static_cast<SokobanMove>(*index));
  const int now = boxes_on_targets(room_);
  ++steps_;
  result.success = now == static_cast<int>(room_.boxes.size());
  if (now != before) result.reward.value += now > before ? 1.0 : -1.0;
  if (result.success) result.reward.value += 10.0;
  result.done = done_ = result.success || steps_ >= options_.max_steps;
  result.observation = observation();
  return result;
}

std::string Sokoban::observation() const {
  return options_.observation_format == ObservationFormat::Grid ? grid() : coordinates();
}

std::string Sokoban::grid() const {
  static constexpr std::array<Symbol, 3> kBare = {kWall, kEmpty, kTarget};  // by SokobanCell
  std::array<std::uint8_t, kMaxSokobanSide * kMaxSokobanSide> drawn;
  for (std::size_t i = 0; i < room_.cells.size(); ++i) drawn[i] = kBare[static_cast<std::size_t>(room_.cells[i])];
  for (const int box : room_.boxes) drawn[box] = is_target(box) ? kBoxOnTarget : kBox;
  drawn[room_.player] = is_target(room_.player) ? kPlayerOnTarget : kPlayer;
  std::string text;
  append_grid(text, {drawn.data(), room_.cells.size()}, room_.columns, glyphs_);
  return text;
}

std::string Sokoban::pieces() const {
  std::vector<int> targets, boxes, placed;
  for (std::size_t i = 0; i < room_.cells.size(); ++i)
    if (room_.cells[i] == SokobanCell::Target) targets.push_back(static_cast<int>(i));
  for (const int box : room_.boxes) (is_target(box) ? placed : boxes).push_back(box);
  std::sort(boxes.begin(), boxes.end());
  std::sort(placed.begin(), placed.end());

  const auto line = [&](std::string_view name, const std::vector<int>& cells) {
    return coordinate_line(name, cells, room_.columns);
  };
  return line("Targets", targets) + line("Boxes", boxes) + line("Boxes on target", placed) +
         line(is_target(room_.player) ? "Player on target" : "Player", {room_.player});
}

std::string Sokoban::coordinates() const {
  return coordinate_head(room_.rows, room_.columns) + pieces() + std::string(kGridMapHeading) + grid();
}

}  // namespace carnot
