// worlds/frozen_lake/game.h -- FrozenLake: reach the goal over slippery ice.
//
// Maps, slips and texts equal those of RAGEN over Gymnasium.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/env/game.h"
#include "carnot/worlds/python/numpy_random.h"
#include "carnot/worlds/ragen/grid_text.h"

namespace carnot {

struct FrozenLakeOptions {
  int size = 4;
  double p = 0.9;             ///< chance that a cell is frozen
  double success_rate = 0.8;  ///< chance to go where one means to; else to one side or the other, equally likely
  bool is_slippery = true;    ///< false: every move goes where it means to
  ObservationFormat observation_format = ObservationFormat::GridCoord;

  void fields(FieldVisitor& visit);
};

/// Cells row by row: 'S' start, 'F' frozen, 'H' hole, 'G' goal.
struct FrozenLakeMap {
  int size = 0;
  std::string cells{};
};

/// The map of this seed: cells frozen with chance p, start and goal anywhere, redrawn until the goal can be reached.
FrozenLakeMap generate_frozen_lake(const FrozenLakeOptions& options, std::uint64_t seed);

inline constexpr std::array<std::string_view, 4> kFrozenLakeActions = {"Left", "Down", "Right", "Up"};

/// Where each move ends and how likely: the intended one and the two perpendicular to it, in the order of Gymnasium.
struct FrozenLakeMoves {
  std::array<double, 3> chances{};
  std::array<int, 3> ends{};
};
FrozenLakeMoves frozen_lake_moves(const FrozenLakeOptions& options, int size, int from, int action);

class FrozenLake : public Game {
 public:
  FrozenLake(const FrozenLakeOptions& options, std::uint64_t seed);

  std::string board_json() const override;
  std::string observation() const override;
  GameStep step(std::string_view action) override;
  std::string anchor() const override { return grid(); }
  std::unique_ptr<Game> clone() const override { return std::make_unique<FrozenLake>(*this); }
  void redraw(std::uint64_t key) override { slips_ = NumpyGenerator(key); }

  const FrozenLakeOptions& options() const { return options_; }
  const FrozenLakeMap& map() const { return map_; }
  int player() const { return player_; }

 private:
  std::string grid() const;
  void append_map(std::string& text) const;
  char cell() const { return map_.cells[player_]; }

  FrozenLakeOptions options_;
  FrozenLakeMap map_;
  NumpyGenerator slips_;
  int player_ = 0;
  std::string above_player_{};  ///< the coordinates that never change
  std::string below_player_{};
  bool done_ = false;
};

/// The action (index of kFrozenLakeActions) most likely to lead from `from` to the goal within `moves` moves, sooner
/// being better, for each cell: exact dynamic programming over the slips.
std::vector<int> solve_frozen_lake(const FrozenLakeOptions& options, const FrozenLakeMap& map, int moves);

}  // namespace carnot
