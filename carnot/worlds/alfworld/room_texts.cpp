// What the simulator says.
#include <algorithm>
#include <string>

#include "carnot/worlds/alfworld/room_access.h"

namespace carnot {
namespace {

constexpr std::string_view kHelp =
    "Available commands:\n"
    "  look:                             look around your current location\n"
    "  inventory:                        check your current inventory\n"
    "  go to (receptacle):               move to a receptacle\n"
    "  open (receptacle):                open a receptacle\n"
    "  close (receptacle):               close a receptacle\n"
    "  take (object) from (receptacle):  take an object from a receptacle\n"
    "  move (object) to (receptacle):  place an object in or on a receptacle\n"
    "  examine (something):              examine a receptacle or an object\n"
    "  use (object):                     use an object\n"
    "  heat (object) with (receptacle):  heat an object using a receptacle\n"
    "  clean (object) with (receptacle): clean an object using a receptacle\n"
    "  cool (object) with (receptacle):  cool an object using a receptacle\n"
    "  slice (object) with (object):     slice an object using a sharp object\n";

constexpr std::string_view kMiddle = "You are in the middle of a room. Looking quickly around you, you see ";

/// "a, b, and c" of names; "nothing" of none.
class NameList {
 public:
  explicit NameList(std::string_view article) : article_(article) {}

  void add(const std::string& name) {
    if (count_ > 0) text_ += ", ";
    last_begin_ = text_.size();
    text_.append(article_).append(name);
    ++count_;
  }

  std::string text() && {
    if (count_ == 0) return "nothing";
    if (count_ > 1) text_.insert(last_begin_, "and ");
    return std::move(text_);
  }

 private:
  std::string_view article_;
  std::string text_{};
  std::size_t last_begin_ = 0;
  int count_ = 0;
};

std::string objects_text(const Room& room, const EntitySet& objects) {
  NameList list("a ");
  objects.for_each([&](int o) { list.add(object_of(room, o).name); });
  return std::move(list).text();
}

std::string receptacle_text(const Room& room, const RoomState& state, int receptacle) {
  const RoomReceptacle& seen = receptacle_of(room, receptacle);
  if (!seen.openable)
    return "On the " + seen.name + ", you see " + objects_text(room, contents(state, receptacle)) + ".";
  if (!state.opened.has(receptacle)) return "The " + seen.name + " is closed.";
  return "The " + seen.name + " is open. In it, you see " + objects_text(room, contents(state, receptacle)) + ".";
}

std::string object_text(const Room& room, const RoomState& state, int object) {
  const std::string& name = object_of(room, object).name;
  const bool clean = state.clean.has(object), hot = state.hot.has(object), cool = state.cool.has(object);
  const bool sliced = state.sliced.has(object);
  if (room.containers.has(object)) {
    NameList list("a ");
    for (const int inner : object_of(room, object).inner) list.add(object_of(room, inner).name);
    return "This is a normal " + name + ". In it, you see " + std::move(list).text() + ".";
  }
  const std::string end = (sliced ? " sliced " : " ") + name + ".";
  if (clean && hot) return "This is a hot and clean" + end;
  if (clean && cool) return "This is a cool and clean" + end;
  if (clean && sliced) return "This is a clean" + end;
  if (hot) return "This is a hot" + end;
  if (sliced && cool) return "This is a cool" + end;
  if (clean) return "This is a clean" + end;
  if (cool) return "This is a cold" + end;
  if (room.toggleable.has(object) && state.toggled.has(object)) return "This " + name + " is on.";
  if (room.sliceable.has(object) && sliced) return "This is a" + end;
  return "There's nothing special about " + name + ".";
}

}  // namespace

std::string feedback(const Room& room, const RoomState& state, const RoomCommand& command) {
  static const std::string kNone;
  const std::string& object = command.object == kNowhere ? kNone : object_of(room, command.object).name;
  const std::string& receptacle = command.receptacle == kNowhere ? kNone : receptacle_of(room, command.receptacle).name;
  switch (command.verb) {
    case RoomVerb::Help: return std::string(kHelp);
    case RoomVerb::Look: return look_text(room, state);
    case RoomVerb::Inventory:
      if (state.held == kNowhere) return "You are not carrying anything.";
      return "You are carrying: a " + object_of(room, state.held).name + ".";
    case RoomVerb::Examine:
      return command.receptacle != kNowhere ? receptacle_text(room, state, command.receptacle)
                                            : object_text(room, state, command.object);
    case RoomVerb::Go: return "You arrive at " + receptacle + ". " + receptacle_text(room, state, command.receptacle);
    case RoomVerb::Open: return "You open the " + receptacle + ". " + receptacle_text(room, state, command.receptacle);
    case RoomVerb::Close: return "You close the " + receptacle + ".";
    case RoomVerb::Take: return "You pick up the " + object + " from the " + receptacle + ".";
    case RoomVerb::Move: return "You move the " + object + " to the " + receptacle + ".";
    case RoomVerb::Clean: return "You clean the " + object + " using the " + receptacle + ".";
    case RoomVerb::Heat: return "You heat the " + object + " using the " + receptacle + ".";
    case RoomVerb::Cool: return "You cool the " + object + " using the " + receptacle + ".";
    case RoomVerb::Slice: return "You sliced the " + object + " with the " + object_of(room, command.knife).name + ".";
    case RoomVerb::Use: return "You turn on the " + object + ".";  // the original says so when it turns off, too
  }
  return "";
}

std::string opening_text(const Room& room) {
  NameList list("a ");
  for (const RoomReceptacle& receptacle : room.receptacles)
    if (receptacle.location != kNowhere) list.add(receptacle.name);
  return std::string(kMiddle) + std::move(list).text() + ".";
}

std::string look_text(const Room& room, const RoomState& state) {
  std::vector<int> here = receptacles_here(room, state);
  if (here.empty()) return std::string(kMiddle) + "nothing.";
  std::sort(here.begin(), here.end());
  NameList faced(""), beside("a ");
  for (const int r : here) faced.add(receptacle_of(room, r).name);
  state.at[static_cast<std::size_t>(state.location)].for_each([&](int o) {
    for (const int r : here)
      if (state.taken[static_cast<std::size_t>(r)].has(o)) beside.add(object_of(room, o).name);
  });
  return "You are facing the " + std::move(faced).text() + ". Next to it, you see " + std::move(beside).text() + ".";
}

}  // namespace carnot
