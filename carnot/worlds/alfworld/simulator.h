// worlds/alfworld/simulator.h -- what commands do in a room, which ones can be carried out, and the texts that answer
// them.
//
// The rules and texts are those of the games json_2.1.1 of ALFWorld 0.4 (TextWorld's PDDL engine): `move O to R`, no
// limit of what a receptacle holds, closed microwaves heat and closed fridges cool, an object is examined only in hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/worlds/alfworld/command.h"
#include "carnot/worlds/alfworld/room.h"

namespace carnot {

inline constexpr std::string_view kNothingHappens = "Nothing happens.";

/// Whether the command can be carried out. `help`, `inventory` and `look` always can.
bool admits(const Room& room, const RoomState& state, const RoomCommand& command);

/// All commands that can be carried out, in the order of their texts; replaces what `commands` holds.
void list_admissible(const Room& room, const RoomState& state, std::vector<RoomCommand>& commands);
std::vector<std::string> admissible_texts(const Room& room, const RoomState& state);

/// Whether the command would leave another state behind: not if it looks, or cleans what is clean. REQUIRES: admits().
bool changes(const RoomState& state, const RoomCommand& command);

/// Carries the command out. REQUIRES: admits().
void apply_command(const Room& room, RoomState& state, const RoomCommand& command);

/// What the player reads after the command. `state` is the one after it.
std::string feedback(const Room& room, const RoomState& state, const RoomCommand& command);

/// What a game begins with: all receptacles of the room.
std::string opening_text(const Room& room);

/// What `look` says. From the middle of the room it is nothing, as in the original, whose grammar looks for receptacles
/// at that very place. Elsewhere it is the receptacles that the agent faces, and next to them the objects here that
/// were taken from one of them and are not back in it: each as often as there are such receptacles.
std::string look_text(const Room& room, const RoomState& state);

bool is_goal(const Room& room, const RoomState& state);

}  // namespace carnot
