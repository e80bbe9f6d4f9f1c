#include "carnot/worlds/alfworld/simulator.h"

#include <algorithm>
#include <array>

#include "carnot/core/base/check.h"
#include "carnot/worlds/alfworld/room_access.h"

namespace carnot {
namespace {

bool is_here(const Room& room, const RoomState& state, int receptacle) {
  return receptacle_of(room, receptacle).location == state.location;
}

/// Whether things can be taken out and put in.
bool is_accessible(const Room& room, const RoomState& state, int receptacle) {
  return !receptacle_of(room, receptacle).openable || state.opened.has(receptacle);
}

bool can_treat(const Room& room, const RoomState& state, RoomVerb verb, int object) {
  if (object != state.held) return false;
  if (verb == RoomVerb::Clean) return room.cleanable.has(object);
  if (verb == RoomVerb::Heat) return room.heatable.has(object);
  return room.coolable.has(object);
}

Appliance appliance_for(RoomVerb verb) {
  if (verb == RoomVerb::Clean) return Appliance::Sink;
  return verb == RoomVerb::Heat ? Appliance::Microwave : Appliance::Fridge;
}

bool can_slice(const Room& room, const RoomState& state, int object, int knife) {
  return knife != kNowhere && knife == state.held && room.knives.has(knife) && room.sliceable.has(object) &&
         state.at[static_cast<std::size_t>(state.location)].has(object);
}

bool can_use(const Room& room, const RoomState& state, int object) {
  if (!room.toggleable.has(object)) return false;
  const std::vector<int>& here = receptacles_here(room, state);
  return std::any_of(here.begin(), here.end(), [&](int r) { return contents(state, r).has(object); });
}

std::int16_t narrow(int number) { return static_cast<std::int16_t>(number); }

/// Appends commands to a list, verb by verb, each verb's in the order of their texts.
class AdmissibleLister {
 public:
  AdmissibleLister(const Room& room, const RoomState& state, std::vector<RoomCommand>& commands)
      : room_(room), state_(state), here_(receptacles_here(room, state)), commands_(commands) {}

  void list() {
    treat(RoomVerb::Clean);
    for (const int r : here_)
      if (is_closable(r) && state_.opened.has(r)) add(RoomVerb::Close, kNowhere, r);
    treat(RoomVerb::Cool);
    examine();
    for (const int r : room_.receptacles_by_name) {
      const int location = receptacle_of(room_, r).location;
      if (location != kNowhere && location != state_.location) add(RoomVerb::Go, kNowhere, r);
    }
    treat(RoomVerb::Heat);
    add(RoomVerb::Help);
    add(RoomVerb::Inventory);
    add(RoomVerb::Look);
    if (state_.held != kNowhere)
      for (const int r : here_)
        if (is_accessible(room_, state_, r) && receptacle_of(room_, r).fits.has(state_.held))
          add(RoomVerb::Move, state_.held, r);
    for (const int r : here_)
      if (is_closable(r) && !state_.opened.has(r)) add(RoomVerb::Open, kNowhere, r);
    slice();
    take();
    use();
  }

 private:
  void add(RoomVerb verb, int object = kNowhere, int receptacle = kNowhere, int knife = kNowhere) {
    commands_.push_back({verb, narrow(object), narrow(receptacle), narrow(knife)});
  }

  bool is_closable(int receptacle) const { return receptacle_of(room_, receptacle).openable; }

  void treat(RoomVerb verb) {
    if (state_.held == kNowhere || !can_treat(room_, state_, verb, state_.held)) return;
    for (const int r : here_)
      if (receptacle_of(room_, r).appliance == appliance_for(verb)) add(verb, state_.held, r);
  }

  void examine() {
    const int held = state_.held;
    const int rank = held == kNowhere ? -1 : room_.object_rank[static_cast<std::size_t>(held)];
    bool listed = held == kNowhere;
    for (const int r : here_) {
      if (!listed && rank < room_.receptacle_rank[static_cast<std::size_t>(r)]) {
        add(RoomVerb::Examine, held);
        listed = true;
      }
      add(RoomVerb::Examine, kNowhere, r);
    }
    if (!listed) add(RoomVerb::Examine, held);
  }

  /// The objects of a set by name, into `sorted_`.
  void sort_by_name(const EntitySet& objects) {
    sorted_size_ = 0;
    objects.for_each([&](int o) { sorted_[sorted_size_++] = narrow(o); });
    std::sort(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(sorted_size_), [&](int a, int b) {
      return room_.object_rank[static_cast<std::size_t>(a)] < room_.object_rank[static_cast<std::size_t>(b)];
    });
  }

  void slice() {
    const int held = state_.held;
    if (held == kNowhere || !room_.knives.has(held)) return;
    sort_by_name(state_.at[static_cast<std::size_t>(state_.location)] & room_.sliceable);
    for (std::size_t i = 0; i < sorted_size_; ++i) add(RoomVerb::Slice, sorted_[i], kNowhere, held);
  }

  void take() {
    if (state_.held != kNowhere) return;
    EntitySet within_reach;
    for (const int r : here_)
      if (is_accessible(room_, state_, r)) within_reach = within_reach | contents(state_, r);
    sort_by_name(within_reach & room_.pickupable);
    for (std::size_t i = 0; i < sorted_size_; ++i)
      for (const int r : here_)
        if (is_accessible(room_, state_, r) && contents(state_, r).has(sorted_[i])) add(RoomVerb::Take, sorted_[i], r);
  }

  void use() {
    EntitySet found;
    for (const int r : here_) found = found | contents(state_, r);
    sort_by_name(found & room_.toggleable);
    for (std::size_t i = 0; i < sorted_size_; ++i) add(RoomVerb::Use, sorted_[i]);
  }

  const Room& room_;
  const RoomState& state_;
  const std::vector<int>& here_;
  std::vector<RoomCommand>& commands_;
  std::array<std::int16_t, kMaxAlfworldEntities> sorted_{};
  std::size_t sorted_size_ = 0;
};

bool placed(const Room& room, const RoomState& state, const EntitySet& objects, int count) {
  bool found = false;
  room.goal.receptacles.for_each([&](int r) { found |= (contents(state, r) & objects).size() >= count; });
  return found;
}

bool looks_in_light(const Room& room, const RoomState& state) {
  if (state.held == kNowhere || !room.goal.objects.has(state.held)) return false;
  const std::vector<int>& here = receptacles_here(room, state);
  const EntitySet lit = room.goal.lamps & state.toggled;
  return std::any_of(here.begin(), here.end(), [&](int r) { return !(contents(state, r) & lit).empty(); });
}

}  // namespace

bool admits(const Room& room, const RoomState& state, const RoomCommand& command) {
  const int o = command.object, r = command.receptacle;
  switch (command.verb) {
    case RoomVerb::Help:
    case RoomVerb::Inventory:
    case RoomVerb::Look: return true;
    case RoomVerb::Go: return receptacle_of(room, r).location != kNowhere && !is_here(room, state, r);
    case RoomVerb::Examine: return r != kNowhere ? is_here(room, state, r) : o == state.held;
    case RoomVerb::Open: return is_here(room, state, r) && receptacle_of(room, r).openable && !state.opened.has(r);
    case RoomVerb::Close: return is_here(room, state, r) && receptacle_of(room, r).openable && state.opened.has(r);
    case RoomVerb::Take:
      return is_here(room, state, r) && state.held == kNowhere && room.pickupable.has(o) && contents(state, r).has(o) &&
             is_accessible(room, state, r);
    case RoomVerb::Move:
      return is_here(room, state, r) && state.held == o && is_accessible(room, state, r) &&
             receptacle_of(room, r).fits.has(o);
    case RoomVerb::Clean:
    case RoomVerb::Heat:
    case RoomVerb::Cool:
      return is_here(room, state, r) && receptacle_of(room, r).appliance == appliance_for(command.verb) &&
             can_treat(room, state, command.verb, o);
    case RoomVerb::Slice: return can_slice(room, state, o, command.knife);
    case RoomVerb::Use: return can_use(room, state, o);
  }
  return false;
}

void list_admissible(const Room& room, const RoomState& state, std::vector<RoomCommand>& commands) {
  commands.clear();
  AdmissibleLister(room, state, commands).list();
}

std::vector<std::string> admissible_texts(const Room& room, const RoomState& state) {
  std::vector<RoomCommand> commands;
  list_admissible(room, state, commands);
  std::vector<std::string> texts;
  texts.reserve(commands.size());
  for (const RoomCommand& command : commands) texts.push_back(command_text(room, command));
  return texts;
}

bool changes(const RoomState& state, const RoomCommand& command) {
  const int o = command.object;
  switch (command.verb) {
    case RoomVerb::Help:
    case RoomVerb::Inventory:
    case RoomVerb::Look:
    case RoomVerb::Examine: return false;
    case RoomVerb::Clean: return !state.clean.has(o);
    case RoomVerb::Heat: return !state.hot.has(o) || state.cool.has(o);
    case RoomVerb::Cool: return !state.cool.has(o) || state.hot.has(o);
    case RoomVerb::Slice: return !state.sliced.has(o);
    case RoomVerb::Go:
    case RoomVerb::Open:
    case RoomVerb::Close:
    case RoomVerb::Take:
    case RoomVerb::Move:
    case RoomVerb::Use: return true;
  }
  return true;
}

void apply_command(const Room& room, RoomState& state, const RoomCommand& command) {
  const int o = command.object, r = command.receptacle;
  switch (command.verb) {
    case RoomVerb::Help:
    case RoomVerb::Inventory:
    case RoomVerb::Look:
    case RoomVerb::Examine: return;
    case RoomVerb::Go: state.location = receptacle_of(room, r).location; return;
    case RoomVerb::Open: state.opened.add(r); return;
    case RoomVerb::Close: state.opened.remove(r); return;
    case RoomVerb::Take:
      contents(state, r).remove(o);
      state.taken[static_cast<std::size_t>(r)].add(o);
      state.at[static_cast<std::size_t>(state.location)].remove(o);
      state.held = o;
      return;
    case RoomVerb::Move:
      contents(state, r).add(o);
      state.taken[static_cast<std::size_t>(r)].remove(o);
      state.at[static_cast<std::size_t>(state.location)].add(o);
      state.held = kNowhere;
      return;
    case RoomVerb::Clean: state.clean.add(o); return;
    case RoomVerb::Heat:
      state.hot.add(o);
      state.cool.remove(o);
      return;
    case RoomVerb::Cool:
      state.cool.add(o);
      state.hot.remove(o);
      return;
    case RoomVerb::Slice: state.sliced.add(o); return;
    case RoomVerb::Use:
      state.on.flip(o);
      state.toggled.add(o);
      return;
  }
}

bool is_goal(const Room& room, const RoomState& state) {
  switch (room.goal.task) {
    case RoomTask::Place: return placed(room, state, room.goal.objects, 1);
    case RoomTask::PlaceClean: return placed(room, state, room.goal.objects & state.clean, 1);
    case RoomTask::PlaceHot: return placed(room, state, room.goal.objects & state.hot, 1);
    case RoomTask::PlaceCool: return placed(room, state, room.goal.objects & state.cool, 1);
    case RoomTask::PlaceTwo: return placed(room, state, room.goal.objects, 2);
    case RoomTask::LookInLight: return looks_in_light(room, state);
  }
  return false;
}

}  // namespace carnot
