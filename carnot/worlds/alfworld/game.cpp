#include "carnot/worlds/alfworld/game.h"

#include "carnot/core/base/check.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/env/game.h"

namespace carnot {
namespace {

constexpr std::string_view kWelcome = "-= Welcome to TextWorld, ALFRED! =-\n\n";

}  // namespace

Alfworld::Alfworld(std::shared_ptr<const AlfworldTask> task, double reward)
    : task_(std::move(task)), reward_(reward), state_(task_->room.start) {
  observation_.append(kWelcome).append(opening_text(task_->room)).append("\n\n").append(task_->sentence);
}

std::string Alfworld::board_json() const {
  return "{\"game\": " + json_text(task_->name()) + ", \"split\": " + json_text(task_->split) +
         ", \"task_type\": " + json_text(task_->task_type) + "}";
}

std::vector<ShownMember> Alfworld::opening_members() const {
  return {{.name = "task", .json = json_text(task_->task())}};
}

std::vector<ShownMember> Alfworld::members() const {
  std::string list;
  for (const std::string& command : admissible()) list += (list.empty() ? "" : ", ") + json_text(command);
  return {{.name = "admissible", .json = "[" + list + "]"}};
}

GameStep Alfworld::step(std::string_view action) {
  CARNOT_CHECK(!done_, "the game is over");
  const Room& room = task_->room;
  GameStep result{.reward = {.value = 0}};
  const auto command = parse_command(room, stripped(action));
  if (!command || !admits(room, state_, *command)) {
    result.observation = observation_ = kNothingHappens;
    return result;
  }
  result.valid = true;
  result.effective = changes(state_, *command);
  apply_command(room, state_, *command);
  result.observation = observation_ = feedback(room, state_, *command);
  result.success = result.done = done_ = is_goal(room, state_);
  if (done_) result.reward.value = reward_;
  return result;
}

}  // namespace carnot
