// worlds/alfworld/room_access.h -- the things of a room by their numbers. Internal to the simulator.
#pragma once

#include <vector>

#include "carnot/worlds/alfworld/simulator.h"

namespace carnot {

inline const RoomReceptacle& receptacle_of(const Room& room, int receptacle) {
  return room.receptacles[static_cast<std::size_t>(receptacle)];
}
inline const RoomObject& object_of(const Room& room, int object) {
  return room.objects[static_cast<std::size_t>(object)];
}
inline EntitySet& contents(RoomState& state, int receptacle) {
  return state.inside[static_cast<std::size_t>(receptacle)];
}
inline const EntitySet& contents(const RoomState& state, int receptacle) {
  return state.inside[static_cast<std::size_t>(receptacle)];
}

/// The receptacles where the agent is, by name.
inline const std::vector<int>& receptacles_here(const Room& room, const RoomState& state) {
  return room.receptacles_at[static_cast<std::size_t>(state.location)];
}

}  // namespace carnot
