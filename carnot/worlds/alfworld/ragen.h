// worlds/alfworld/ragen.h -- ALFWorld as RAGEN shows it: the observation is followed by the admissible actions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/worlds/alfworld/game.h"
#include "carnot/worlds/ragen/conversation.h"

namespace carnot {

class RagenAlfworld final : public Game {
 public:
  explicit RagenAlfworld(Alfworld game) : game_(std::move(game)) {}

  std::string board_json() const override { return game_.board_json(); }
  std::string observation() const override;
  GameStep step(std::string_view action) override;
  std::string anchor() const override { return game_.observation(); }
  std::unique_ptr<Game> clone() const override { return std::make_unique<RagenAlfworld>(*this); }

  const Alfworld& game() const { return game_; }

 private:
  Alfworld game_;
};

/// What the system message says. RAGEN's own words for ALFWorld are not published with its other prompts; these are
/// ours.
RagenText ragen_alfworld_text();

}  // namespace carnot
