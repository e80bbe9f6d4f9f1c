#include "carnot/worlds/alfworld/environment.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr std::size_t kFallbackCharacters = 30;

// The texts are verl-agent's (Apache-2.0), to the byte.
constexpr std::string_view kExpert = "\nYou are an expert agent operating in the ALFRED Embodied Environment.";
constexpr std::string_view kAlfworldInstruction =
    "].\n\nNow it's your turn to take an action.\n"
    "You should first reason step-by-step about the current situation. This reasoning process MUST be enclosed within "
    "<think> </think> tags. \n"
    "Once you've finished your reasoning, you should choose an admissible action for current step and present it "
    "within "
    "<action> </action> tags.\n";

constexpr std::string_view kTranscriptInstruction =
    "Interact with a household to solve a task. Answer each observation with <think>your thoughts</think><action>one "
    "command</action>. The command help lists all commands.";

}  // namespace

std::map<std::string, std::string> alfworld_info(const AlfworldTask& task) {
  return {
      {"game", task.name()}, {"split", task.split}, {"task_type", task.task_type}, {"task", std::string(task.task())}};
}

AlfworldConversation::AlfworldConversation(const AlfworldConversationOptions& options, Alfworld game)
    : options_(options), game_(std::move(game)) {}

Protocol AlfworldConversation::protocol() const {
  return {
      .action_tags = {"action"}, .max_turns = options_.max_steps, .max_response_tokens = options_.max_response_tokens};
}

Opening AlfworldConversation::open() { return options_.transcript ? transcript_opening() : step_prompt(); }

std::map<std::string, std::string> AlfworldConversation::info() const { return alfworld_info(game_.task()); }

PlainView AlfworldConversation::plain_view() const {
  std::vector<std::string> actions;
  for (const std::string& action : game_.admissible())
    if (action != "help") actions.push_back(action);
  return {.task = "You are in a house. Your task is to: " + std::string(game_.task().task()),
          .actions = "one of those that an observation lists, as it is written there",
          .observation = game_.observation() + "\nPossible actions: " + join(actions)};
}

// Without the welcome, the first paragraph.
Opening AlfworldConversation::transcript_opening() const {
  const std::string& text = game_.observation();
  return {.system = std::string(kTranscriptInstruction), .user = text.substr(text.find("You are in"))};
}

Opening AlfworldConversation::step_prompt() const {
  std::string text(kExpert);
  if (steps_.empty() || options_.history_length == 0) {
    text.append("\nYour current observation is: ");
  } else {
    const auto length = static_cast<std::size_t>(options_.history_length);
    text.append(" Your task is to: ").append(game_.task().task());
    text.append("\nPrior to this step, you have already taken ").append(std::to_string(steps_.size()));
    text.append(" step(s). Below are the most recent ").append(std::to_string(std::min(length, steps_.size())));
    text.append(" observations and the corresponding actions you took: ").append(verl_agent_memory(steps_, length));
    text.append("\nYou are now at step ").append(std::to_string(steps_.size() + 1));
    text.append(" and your current observation is: ");
  }
  text.append(game_.observation()).append("\nYour admissible actions of the current situation are: [");
  bool first = true;
  for (const std::string& action : game_.admissible()) {
    if (action == "help") continue;
    text.append(first ? "'" : "\n '").append(action).append("'");
    first = false;
  }
  return {.user = text.append(kAlfworldInstruction)};
}

Reply AlfworldConversation::step(const PolicyResponse& response) {
  CARNOT_CHECK(!done_, "the episode is over");
  VerlAgentAction action = read_verl_agent_action(response.text, kFallbackCharacters);
  std::string before = game_.observation();
  const GameStep played = game_.step(action.text);
  steps_.push_back({.observation = std::move(before), .action = std::move(action.text)});
  const int taken = static_cast<int>(steps_.size());
  valid_steps_ += action.valid ? 1 : 0;
  admissible_steps_ += played.valid ? 1 : 0;
  done_ = played.done || taken == options_.max_steps;

  Reply reply{.form = options_.transcript ? ReplyForm::UserMessage : ReplyForm::FreshPrompt,
              .reward = played.reward.value,
              .penalty = action.valid ? 0 : -options_.penalty,
              .valid_action = action.valid,
              .done = done_,
              .outcome = played.done ? Outcome::Finished : Outcome::OutOfTurns,
              .success = played.success};
  if (!done_) {
    if (options_.transcript)
      reply.text = game_.observation();
    else
      reply.prompt = step_prompt();
    return reply;
  }
  reply.measures["actions"] = taken;
  reply.measures["admissible_actions"] = static_cast<double>(admissible_steps_) / taken;
  reply.measures["valid_turns"] = static_cast<double>(valid_steps_) / taken;
  return reply;
}

}  // namespace carnot
