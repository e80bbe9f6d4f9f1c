// worlds/sokoban/game.h -- Sokoban: push every box onto a target. Rooms, texts and rewards equal RAGEN's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/env/game.h"
#include "carnot/worlds/ragen/grid_text.h"
#include "carnot/worlds/sokoban/room.h"

namespace carnot {

struct SokobanOptions {
  int dim_x = 6;  ///< rows
  int dim_y = 6;  ///< columns
  int num_boxes = 1;
  int max_steps = 100;
  int search_depth = 300;
  ObservationFormat observation_format = ObservationFormat::Grid;
  bool letter_symbols = false;  ///< W . G C B A @ instead of # _ O √ X P S

  void fields(FieldVisitor& visit);
  SokobanRoomOptions room() const;
};

/// Symbol of each kind of cell, in the order that prompts list them, with its meaning.
struct CellSymbol {
  std::string_view symbol;
  std::string_view meaning;
};
std::array<CellSymbol, 7> sokoban_symbols(bool letters);

/// Names of SokobanMove's values.
inline constexpr std::array<std::string_view, kSokobanMoves> kSokobanActions = {"Up", "Down", "Left", "Right"};

/// Each step costs 0.1; a box put on a target gives 1, one taken off costs 1, the last one gives 10 more.
class Sokoban : public Game {
 public:
  Sokoban(const SokobanOptions& options, SokobanRoom room);

  std::string board_json() const override;
  std::string observation() const override;
  GameStep step(std::string_view action) override;
  std::string anchor() const override { return grid(); }
  std::unique_ptr<Game> clone() const override { return std::make_unique<Sokoban>(*this); }

  const SokobanRoom& room() const { return room_; }  ///< its present state

  /// Where targets, boxes and the player are, a line each, as in an observation with coordinates.
  std::string pieces() const;

 private:
  std::string grid() const;
  std::string coordinates() const;
  bool is_target(int cell) const { return room_.at(cell) == SokobanCell::Target; }

  SokobanOptions options_;
  SokobanRoom room_;
  std::array<Glyph, 7> glyphs_{};
  std::string board_;
  int steps_ = 0;
  bool done_ = false;
};

}  // namespace carnot
