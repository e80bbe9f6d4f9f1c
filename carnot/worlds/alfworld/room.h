// worlds/alfworld/room.h -- a room of ALFWorld as its PDDL problem states it: what never changes, how it starts, the
// goal.
//
// Objects and receptacles are numbered in the order of their ids, the order in which texts list them. A name is the
// id's first part and a number: of the ids with one first part, the first in order has the highest number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/worlds/alfworld/entity_set.h"

namespace carnot {

inline constexpr int kNowhere = -1;  ///< no location, no object, no receptacle

/// What a receptacle does to a held object.
enum class Appliance : std::uint8_t { None, Sink, Microwave, Fridge };

struct RoomReceptacle {
  std::string name{};
  std::string type{};  ///< "sinkbasintype"; empty if no fact says
  int location = kNowhere;
  bool openable = false;
  Appliance appliance = Appliance::None;
  EntitySet fits{};  ///< objects that may be put there
};

struct RoomObject {
  std::string name{};
  std::string type{};
  std::vector<int> inner{};  ///< objects inside it; they cannot be taken out
};

/// What happens to be true of objects and receptacles; it changes with every step.
struct RoomState {
  int location = kNowhere;                                      ///< the agent's
  int held = kNowhere;                                          ///< object in the agent's hand
  EntitySet opened{};                                           ///< receptacles
  EntitySet clean{}, hot{}, cool{}, on{}, toggled{}, sliced{};  ///< objects
  std::vector<EntitySet> inside{};                              ///< per receptacle: the objects in or on it
  std::vector<EntitySet> taken{};  ///< per receptacle: the objects that were taken from it and are not back; for `look`
  /// Per location: the objects said to be there. Where an object was first seen, which need not be where the receptacle
  /// that holds it is.
  std::vector<EntitySet> at{};

  bool operator==(const RoomState&) const = default;
};

enum class RoomTask : std::uint8_t { Place, PlaceClean, PlaceHot, PlaceCool, PlaceTwo, LookInLight };

struct RoomGoal {
  RoomTask task = RoomTask::Place;
  EntitySet objects{};      ///< any of them will do; those that can have the property that is requested
  EntitySet receptacles{};  ///< any of them (Place...)
  EntitySet lamps{};        ///< any of them (LookInLight)
};

struct NamedEntity {
  std::string name{};
  int object = kNowhere;
  int receptacle = kNowhere;  ///< exactly one of the two
};

struct Room {
  std::vector<RoomObject> objects{};
  std::vector<RoomReceptacle> receptacles{};
  int locations = 0;

  EntitySet pickupable{}, cleanable{}, heatable{}, coolable{}, toggleable{}, sliceable{};  ///< objects
  EntitySet knives{}, containers{};

  std::vector<NamedEntity> names{};    ///< sorted
  std::vector<int> object_rank{};      ///< place of an object in `names`
  std::vector<int> receptacle_rank{};  ///< place of a receptacle in `names`
  std::vector<int> receptacles_by_name{};
  std::vector<std::vector<int>> receptacles_at{};  ///< per location, by name

  RoomState start{};
  RoomGoal goal{};

  /// Null if the room has nothing of that name.
  const NamedEntity* find(std::string_view name) const;
};

/// Reads the text of a PDDL problem over ALFWorld's domain, whatever its letters' case. `name` is for messages, which
/// say line, what was found, and what was expected.
Result<Room> parse_room(std::string_view problem, const std::string& name);

}  // namespace carnot
