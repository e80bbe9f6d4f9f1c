// worlds/alfworld/demonstrator.h -- plays ALFWorld by script: looks into some receptacles, then goes the solver's way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/random.h"
#include "carnot/core/env/environment.h"
#include "carnot/worlds/alfworld/game.h"

namespace carnot {

enum class AlfworldThoughts : std::uint8_t {
  Plan,   ///< what comes next: "Next: take mug 1 from desk 1.", "Look: desk 1.", "Not sure, try go to desk 1."
  State,  ///< how far the task is, whatever comes next: "find mug", "clean mug 1", "put mug 1 in desk"
};

struct AlfworldDemonstrationOptions {
  /// Receptacles that it looks into, in random order, while it has not seen what the task needs; then it knows where
  /// everything is. 0: it knows from the start.
  int searches = 0;
  double careless = 0;  ///< share of commands that are any admissible one
  AlfworldThoughts thoughts = AlfworldThoughts::Plan;

  void fields(FieldVisitor& visit);
};

/// What a demonstration says before and as its action.
struct DemonstratedAction {
  std::string thought{};
  std::string action{};
};

/// A script for either conversation. `form` writes a response.
std::unique_ptr<ScriptedAgent> make_alfworld_agent(const Alfworld& game, const AlfworldDemonstrationOptions& options,
                                                   RandomStream random,
                                                   std::function<std::string(const DemonstratedAction&)> form);

}  // namespace carnot
