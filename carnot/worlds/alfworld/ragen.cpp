#include "carnot/worlds/alfworld/ragen.h"

#include "carnot/core/base/strings.h"

namespace carnot {

std::string RagenAlfworld::observation() const {
  return game_.observation() + "\n\nAdmissible actions: [" + join(game_.admissible()) + "]";
}

GameStep RagenAlfworld::step(std::string_view action) {
  GameStep result = game_.step(action);
  result.observation = observation();
  return result;
}

RagenText ragen_alfworld_text() {
  return {.instruction =
              "You are doing a household task in a text world. \n"
              "Every turn shows what you see and which actions are admissible now. \n"
              "The answer should be one admissible action, like <answer>go to desk 1</answer>\n"};
}

}  // namespace carnot
