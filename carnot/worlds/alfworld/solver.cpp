#include "carnot/worlds/alfworld/solver.h"

#include <algorithm>

#include "carnot/worlds/alfworld/simulator.h"

namespace carnot {
namespace {

/// Carries out errands on a copy of the state and notes the commands. Once one of them fails, or the game is won, it
/// does nothing more.
class Walk {
 public:
  Walk(const Room& room, RoomState state) : room_(&room), state_(std::move(state)), won_(is_goal(room, state_)) {}

  bool won() const { return won_ && !failed_; }
  bool failed() const { return failed_; }
  const RoomState& state() const { return state_; }
  const std::vector<PlannedCommand>& commands() const { return commands_; }

  void take(int object, int from) {
    const RoomCommand aim = command(RoomVerb::Take, object, from);
    reach(from, aim);
    carry_out(aim, aim);
  }

  /// Whether the object can be found there.
  bool holds(int receptacle, int object) const {
    return is_reachable(receptacle) && state_.inside[static_cast<std::size_t>(receptacle)].has(object);
  }

  void put(int object, int receptacle) {
    const RoomCommand aim = command(RoomVerb::Move, object, receptacle);
    reach(receptacle, aim);
    carry_out(aim, aim);
  }

  /// Cleans, heats or cools the held object, as the task asks, where it is not so yet.
  void treat() {
    const int object = state_.held;
    if (object == kNowhere) return fail();
    const RoomTask task = room_->goal.task;
    if (task == RoomTask::PlaceClean && !state_.clean.has(object)) treat_with(RoomVerb::Clean, Appliance::Sink);
    if (task == RoomTask::PlaceHot && !state_.hot.has(object)) treat_with(RoomVerb::Heat, Appliance::Microwave);
    if (task == RoomTask::PlaceCool && !state_.cool.has(object)) treat_with(RoomVerb::Cool, Appliance::Fridge);
  }

  void use(int lamp) {
    const int on = holder(lamp);
    if (on == kNowhere) return fail();
    const RoomCommand aim = command(RoomVerb::Use, lamp);
    go(on, aim);
    carry_out(aim, aim);
  }

  /// Puts what is held where it fits, as near as possible.
  void free_hand() {
    const int object = state_.held;
    if (object == kNowhere) return;
    std::vector<int> places = room_->receptacles_by_name;
    std::stable_sort(places.begin(), places.end(), [&](int a, int b) { return way_to(a) < way_to(b); });
    for (const int place : places)
      if (room_->receptacles[static_cast<std::size_t>(place)].fits.has(object) && is_reachable(place))
        return put(object, place);
    fail();
  }

 private:
  static RoomCommand command(RoomVerb verb, int object, int receptacle = kNowhere) {
    return {verb, static_cast<std::int16_t>(object), static_cast<std::int16_t>(receptacle)};
  }

  void fail() { failed_ = true; }

  bool is_reachable(int receptacle) const {
    return room_->receptacles[static_cast<std::size_t>(receptacle)].location != kNowhere;
  }
  bool is_closed(int receptacle) const {
    return room_->receptacles[static_cast<std::size_t>(receptacle)].openable && !state_.opened.has(receptacle);
  }
  bool is_elsewhere(int receptacle) const {
    return room_->receptacles[static_cast<std::size_t>(receptacle)].location != state_.location;
  }
  int way_to(int receptacle) const { return (is_elsewhere(receptacle) ? 1 : 0) + (is_closed(receptacle) ? 1 : 0); }

  /// The receptacle that holds the object; of several the one with the shortest way.
  int holder(int object) const {
    int best = kNowhere;
    for (const int r : room_->receptacles_by_name)
      if (holds(r, object) && (best == kNowhere || way_to(r) < way_to(best))) best = r;
    return best;
  }

  void go(int receptacle, const RoomCommand& aim) {
    if (is_elsewhere(receptacle)) carry_out(command(RoomVerb::Go, kNowhere, receptacle), aim);
  }
  void reach(int receptacle, const RoomCommand& aim) {
    go(receptacle, aim);
    if (is_closed(receptacle)) carry_out(command(RoomVerb::Open, kNowhere, receptacle), aim);
  }

  void treat_with(RoomVerb verb, Appliance appliance) {
    int best = kNowhere;
    for (const int r : room_->receptacles_by_name)
      if (room_->receptacles[static_cast<std::size_t>(r)].appliance == appliance && is_reachable(r) &&
          (best == kNowhere || (is_elsewhere(best) && !is_elsewhere(r))))
        best = r;
    if (best == kNowhere) return fail();
    const RoomCommand aim = command(verb, state_.held, best);
    go(best, aim);
    carry_out(aim, aim);
  }

  void carry_out(const RoomCommand& next, const RoomCommand& aim) {
    if (failed_ || won_) return;
    if (!admits(*room_, state_, next)) return fail();
    apply_command(*room_, state_, next);
    commands_.push_back({next, aim});
    won_ = is_goal(*room_, state_);
  }

  const Room* room_;
  RoomState state_;
  std::vector<PlannedCommand> commands_{};
  bool won_ = false;
  bool failed_ = false;
};

/// The walk with the fewest commands of those that did not fail.
class Best {
 public:
  void offer(Walk walk) {
    if (!walk.failed() && (!walk_ || walk.commands().size() < walk_->commands().size())) walk_ = std::move(walk);
  }
  std::optional<Walk>& walk() { return walk_; }

 private:
  std::optional<Walk> walk_{};
};

/// Further on by one object of the goal: in hand, ready to be put down or looked at.
void for_each_in_hand(const Room& room, const Walk& from, const EntitySet& objects, const auto& visit) {
  if (from.state().held != kNowhere) {
    Walk walk = from;
    walk.treat();
    return visit(walk);
  }
  // An object may be said to be in two receptacles; taken out of one, it stays in the other.
  (objects & room.pickupable).for_each([&](int object) {
    for (const int receptacle : room.receptacles_by_name) {
      if (!from.holds(receptacle, object)) continue;
      Walk walk = from;
      walk.take(object, receptacle);
      walk.treat();
      if (!walk.failed()) visit(walk);
    }
  });
}

std::optional<Walk> look(const Room& room, const Walk& from) {
  Best best;
  for_each_in_hand(room, from, room.goal.objects, [&](const Walk& holding) {
    room.goal.lamps.for_each([&](int lamp) {
      Walk walk = holding;
      walk.use(lamp);
      best.offer(std::move(walk));
    });
  });
  return std::move(best.walk());
}

/// Puts `count` objects of the goal into the receptacle, those that are there included.
std::optional<Walk> fill(const Room& room, const Walk& from, int receptacle, int count) {
  std::optional<Walk> walk = from;
  for (int step = 0; step < count && walk && !walk->won(); ++step) {
    const EntitySet there = walk->state().inside[static_cast<std::size_t>(receptacle)];
    // One that is there already counts, unless it has to be treated first.
    const EntitySet candidates = count > 1 ? room.goal.objects - there : room.goal.objects;
    Best best;
    for_each_in_hand(room, *walk, candidates, [&](const Walk& holding) {
      Walk next = holding;
      next.put(next.state().held, receptacle);
      best.offer(std::move(next));
    });
    walk = std::move(best.walk());
  }
  return walk;
}

}  // namespace

std::optional<std::vector<PlannedCommand>> solve_alfworld(const Room& room, const RoomState& state) {
  Walk start(room, state);
  if (state.held != kNowhere && !room.goal.objects.has(state.held)) start.free_hand();
  Best best;
  if (start.won()) {
    best.offer(start);
  } else if (room.goal.task == RoomTask::LookInLight) {
    if (auto walk = look(room, start); walk && walk->won()) best.offer(std::move(*walk));
  } else {
    const int count = room.goal.task == RoomTask::PlaceTwo ? 2 : 1;
    room.goal.receptacles.for_each([&](int receptacle) {
      if (auto walk = fill(room, start, receptacle, count); walk && walk->won()) best.offer(std::move(*walk));
    });
  }
  if (!best.walk()) return std::nullopt;
  return best.walk()->commands();
}

}  // namespace carnot
