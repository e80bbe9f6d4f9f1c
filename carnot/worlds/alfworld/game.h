// worlds/alfworld/game.h -- a household game of ALFWorld: go, open, take, clean, heat, cool, move, use, until the task
// is done.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/env/game.h"
#include "carnot/worlds/alfworld/game_files.h"
#include "carnot/worlds/alfworld/simulator.h"

namespace carnot {

/// A command that cannot be carried out is answered "Nothing happens." and changes nothing. A command is as the
/// admissible list has it; blanks around it do not matter. The game ends where the task is done, and then gives
/// `reward`.
class Alfworld final : public Game {
 public:
  Alfworld(std::shared_ptr<const AlfworldTask> task, double reward);

  std::string board_json() const override;
  std::vector<ShownMember> opening_members() const override;
  std::vector<ShownMember> members() const override;
  std::string observation() const override {
    return observation_;
  }  ///< the last answer; at first the room and the task
  GameStep step(std::string_view action) override;
  std::unique_ptr<Game> clone() const override { return std::make_unique<Alfworld>(*this); }

  const AlfworldTask& task() const { return *task_; }
  const RoomState& state() const { return state_; }
  std::vector<std::string> admissible() const { return admissible_texts(task_->room, state_); }

 private:
  std::shared_ptr<const AlfworldTask> task_;
  double reward_;
  RoomState state_;
  std::string observation_;
  bool done_ = false;
};

}  // namespace carnot
