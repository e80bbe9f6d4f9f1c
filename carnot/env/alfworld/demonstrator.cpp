#include "carnot/env/alfworld/demonstrator.h"

#include <algorithm>
#include <utility>

#include "carnot/base/limits.h"

namespace carnot {
namespace {

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
}

DemonstratedAction AlfworldDemonstrator::next() {
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

RoomCommand AlfworldDemonstrator::careless() {
  std::vector<RoomCommand> commands;
  list_admissible(game_.task().room, game_.state(), commands);
  return random_.pick(commands);
}

/// Whether there is a way to the end, as far as it has seen the room.
bool AlfworldDemonstrator::follow_plan(const RoomState& state) {
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

/// Towards the contents of a receptacle that it has not seen; opens where it stands, else goes.
std::optional<RoomCommand> AlfworldDemonstrator::search() {
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

void AlfworldDemonstrator::note(const RoomCommand& command) {
  if (command.receptacle == kNowhere) return;
  const RoomReceptacle& receptacle = game_.task().room.receptacles[static_cast<std::size_t>(command.receptacle)];
  const bool shows =
      command.verb == RoomVerb::Open || ((command.verb == RoomVerb::Go || command.verb == RoomVerb::Examine) &&
                                         (!receptacle.openable || game_.state().opened.has(command.receptacle)));
  if (!shows || seen_.has(command.receptacle)) return;
  seen_.add(command.receptacle);
  ++searched_;
}

std::unique_ptr<ScriptedAgent> make_alfworld_agent(const Alfworld& game, const AlfworldDemonstrationOptions& options,
                                                   RandomStream random,
                                                   std::function<std::string(const DemonstratedAction&)> form) {
  return std::make_unique<AlfworldAgent>(AlfworldDemonstrator(game, options, random), std::move(form));
}

}  // namespace carnot
