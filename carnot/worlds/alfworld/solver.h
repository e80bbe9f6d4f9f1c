// worlds/alfworld/solver.h -- a short way from any state of a game to its end.
//
// It fetches, treats and puts down one object after the other, each time the one that takes the fewest commands. Not
// always the shortest way, which would take the second object of two into account when it fetches the first.
#pragma once

#include <optional>
#include <vector>

#include "carnot/worlds/alfworld/command.h"
#include "carnot/worlds/alfworld/room.h"

namespace carnot {

struct PlannedCommand {
  RoomCommand command{};
  RoomCommand aim{};  ///< what it prepares: to go somewhere and open it in order to take something; or itself
};

/// Commands that win, one after the other; none at all where the state has won already. No plan where the objects that
/// are requested cannot be had or put there, as far as `state` shows.
std::optional<std::vector<PlannedCommand>> solve_alfworld(const Room& room, const RoomState& state);

}  // namespace carnot
