#include "carnot/worlds/alfworld/demonstrator.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "carnot/core/base/limits.h"
#include "carnot/worlds/alfworld/solver.h"

namespace carnot {
namespace {

std::string without_number(const std::string& name) { return name.substr(0, name.find(' ')); }

/// The name of one of the set; empty if it has none.
std::string one_object(const Room& room, const EntitySet& objects) {
  std::string name;
  objects.for_each([&](int object) { name = room.objects[static_cast<std::size_t>(object)].name; });
  return name;
}

std::string one_receptacle(const Room& room, const EntitySet& receptacles) {
  std::string name;
  receptacles.for_each([&](int receptacle) { name = room.receptacles[static_cast<std::size_t>(receptacle)].name; });
  return name;
}

class AlfworldDemonstrator {
 public:
  AlfworldDemonstrator(const Alfworld& game, const AlfworldDemonstrationOptions& options, RandomStream random)
      : game_(game), options_(options), random_(random) {}

  /// The next one in the game's present state; to be carried out before the next call.
  DemonstratedAction next() {
    DemonstratedAction said = planned();
    if (options_.thoughts == AlfworldThoughts::State) said.thought = remaining();
    return said;
  }

 private:
  DemonstratedAction planned() {
    const Room& room = game_.task().room;
    DemonstratedAction said;
    RoomCommand command;
    if (random_.chance(options_.careless)) {
      plan_.clear();
      command = careless();
      said.thought = "Not sure, try " + command_text(room, command) + ".";
    } else if (follow_plan(game_.state())) {
      command = plan_.back().command;
      said.thought = "Next: " + command_text(room, plan_.back().aim) + ".";
      plan_.pop_back();
    } else if (const auto found = search()) {
      command = *found;
      said.thought = "Look: " + room.receptacles[static_cast<std::size_t>(command.receptacle)].name + ".";
    } else {
      command = careless();
      said.thought = "Not sure, try " + command_text(room, command) + ".";
    }
    note(command);
    said.action = command_text(room, command);
    return said;
  }

  /// What the task still asks for, of what is held or has to be found.
  std::string remaining() const {
    const Room& room = game_.task().room;
    const RoomGoal& goal = room.goal;
    const RoomState& state = game_.state();
    if (state.held == kNowhere) return "find " + without_number(one_object(room, goal.objects));
    const std::string& held = room.objects[static_cast<std::size_t>(state.held)].name;
    if (!goal.objects.has(state.held)) return "drop " + held;
    switch (goal.task) {
      case RoomTask::LookInLight: return "light " + held;
      case RoomTask::PlaceClean:
        if (!state.clean.has(state.held)) return "clean " + held;
        break;
      case RoomTask::PlaceHot:
        if (!state.hot.has(state.held)) return "heat " + held;
        break;
      case RoomTask::PlaceCool:
        if (!state.cool.has(state.held)) return "cool " + held;
        break;
      case RoomTask::Place:
      case RoomTask::PlaceTwo: break;
    }
    return "put " + held + " in " + without_number(one_receptacle(room, goal.receptacles));
  }

  RoomCommand careless() {
    std::vector<RoomCommand> commands;
    list_admissible(game_.task().room, game_.state(), commands);
    return random_.pick(commands);
  }

  /// Whether there is a way to the end, as far as it has seen the room.
  bool follow_plan(const RoomState& state) {
    if (!plan_.empty()) return true;
    RoomState known = state;
    if (searched_ < options_.searches)
      for (std::size_t r = 0; r < known.inside.size(); ++r)
        if (!seen_.has(static_cast<int>(r))) known.inside[r] = {};
    auto plan = solve_alfworld(game_.task().room, known);
    if (!plan) return false;
    plan_ = std::move(*plan);
    std::reverse(plan_.begin(), plan_.end());
    return !plan_.empty();
  }

  /// Towards the contents of a receptacle that it has not seen; opens one that it is at, or else goes to one.
  std::optional<RoomCommand> search() {
    const Room& room = game_.task().room;
    std::vector<RoomCommand> commands;
    list_admissible(room, game_.state(), commands);
    std::vector<RoomCommand> open, go;
    for (const RoomCommand& command : commands) {
      if (command.receptacle == kNowhere || seen_.has(command.receptacle)) continue;
      if (command.verb == RoomVerb::Open || command.verb == RoomVerb::Examine) open.push_back(command);
      if (command.verb == RoomVerb::Go) go.push_back(command);
    }
    std::erase_if(open, [&](const RoomCommand& command) {
      const RoomReceptacle& receptacle = room.receptacles[static_cast<std::size_t>(command.receptacle)];
      return command.verb == RoomVerb::Examine && receptacle.openable && !game_.state().opened.has(command.receptacle);
    });
    if (!open.empty()) return random_.pick(open);
    if (!go.empty()) return random_.pick(go);
    return std::nullopt;
  }

  void note(const RoomCommand& command) {
    if (command.receptacle == kNowhere) return;
    const RoomReceptacle& receptacle = game_.task().room.receptacles[static_cast<std::size_t>(command.receptacle)];
    const bool shows =
        command.verb == RoomVerb::Open || ((command.verb == RoomVerb::Go || command.verb == RoomVerb::Examine) &&
                                           (!receptacle.openable || game_.state().opened.has(command.receptacle)));
    if (!shows || seen_.has(command.receptacle)) return;
    seen_.add(command.receptacle);
    ++searched_;
  }

  const Alfworld& game_;
  AlfworldDemonstrationOptions options_;
  RandomStream random_;
  std::vector<PlannedCommand> plan_{};  ///< the next command is the last
  EntitySet seen_{};                    ///< receptacles whose contents it was shown
  int searched_ = 0;
};

class AlfworldAgent final : public ScriptedAgent {
 public:
  AlfworldAgent(AlfworldDemonstrator demonstrator, std::function<std::string(const DemonstratedAction&)> form)
      : demonstrator_(std::move(demonstrator)), form_(std::move(form)) {}

  PolicyResponse respond(std::string_view) override { return form_(demonstrator_.next()); }

 private:
  AlfworldDemonstrator demonstrator_;
  std::function<std::string(const DemonstratedAction&)> form_;
};

}  // namespace

void AlfworldDemonstrationOptions::fields(FieldVisitor& visit) {
  visit.field(
      "searches", searches,
      "receptacles that a demonstration looks into before it knows where everything is; 0: it knows from the start",
      between(0, kMaxEpisodeSteps));
  visit.field("careless", careless, "share of a demonstration's commands that are any admissible one", between(0, 1));
  enum_field(
      visit, "thoughts", thoughts, {"plan", "state"},
      "what a demonstration thinks; plan: what it does next; state: how far the task is, so that the action alone "
      "decides");
}

std::unique_ptr<ScriptedAgent> make_alfworld_agent(const Alfworld& game, const AlfworldDemonstrationOptions& options,
                                                   RandomStream random,
                                                   std::function<std::string(const DemonstratedAction&)> form) {
  return std::make_unique<AlfworldAgent>(AlfworldDemonstrator(game, options, random), std::move(form));
}

}  // namespace carnot
