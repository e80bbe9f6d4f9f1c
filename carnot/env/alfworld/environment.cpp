#include "carnot/env/alfworld/environment.h"

#include <utf8proc.h>

#include "carnot/base/check.h"
#include "carnot/base/utf8.h"

namespace carnot {
namespace {

constexpr std::string_view kActionOpen = "<action>", kActionClose = "</action>";
constexpr int kLastCharacters = 30;

// The texts are verl-agent's (Apache-2.0), to the byte.
constexpr std::string_view kExpert = "\nYou are an expert agent operating in the ALFRED Embodied Environment.";
constexpr std::string_view kInstruction =
    "].\n\nNow it's your turn to take an action.\n"
    "You should first reason step-by-step about the current situation. This reasoning process MUST be enclosed within "
    "<think> </think> tags. \n"
    "Once you've finished your reasoning, you should choose an admissible action for current step and present it "
    "within "
    "<action> </action> tags.\n";

std::string unicode_lower(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = first_character(text);
    const auto length = static_cast<std::size_t>(character.length);
    if (character.valid)
      append_utf8(lower, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character.code_point))));
    else
      lower += text.substr(0, length);
    text.remove_prefix(length);
  }
  return lower;
}

std::string_view last_characters(std::string_view text, int count) {
  std::size_t begin = text.size();
  for (; count > 0 && begin > 0; --count) begin = last_character_begin(text.substr(0, begin));
  return text.substr(begin);
}

bool has_chinese_character(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = first_character(text);
    if (character.valid && character.code_point >= 0x4E00 && character.code_point <= 0x9FFF) return true;
    text.remove_prefix(static_cast<std::size_t>(character.length));
  }
  return false;
}

}  // namespace

ProjectedAction project_action(std::string_view response) {
  const std::string lower = unicode_lower(response);
  const auto open = lower.find(kActionOpen), close = lower.find(kActionClose);
  if (open == std::string::npos || close == std::string::npos)
    return {.action = std::string(last_characters(lower, kLastCharacters))};
  const std::size_t begin = open + kActionOpen.size();
  ProjectedAction projected;
  if (begin < close) projected.action = stripped(std::string_view(lower).substr(begin, close - begin));
  projected.valid = response.find("<think>") != std::string_view::npos &&
                    response.find("</think>") != std::string_view::npos && !has_chinese_character(response);
  return projected;
}

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

Opening AlfworldConversation::open() { return {.user = prompt()}; }

std::map<std::string, std::string> AlfworldConversation::info() const { return alfworld_info(game_.task()); }

std::string AlfworldConversation::memory() const {
  std::string lines;
  int number = steps_ - static_cast<int>(recent_.size());
  for (const Step& step : recent_) {
    const std::string n = std::to_string(++number);
    lines.append(lines.empty() ? "" : "\n").append("[Observation ").append(n).append(": '").append(step.observation);
    lines.append("', Action ").append(n).append(": '").append(step.action).append("']");
  }
  return lines;
}

std::string AlfworldConversation::prompt() const {
  std::string text(kExpert);
  if (steps_ == 0 || options_.history_length == 0) {
    text.append("\nYour current observation is: ");
  } else {
    text.append(" Your task is to: ").append(game_.task().task());
    text.append("\nPrior to this step, you have already taken ").append(std::to_string(steps_));
    text.append(" step(s). Below are the most recent ").append(std::to_string(recent_.size()));
    text.append(" observations and the corresponding actions you took: ").append(memory());
    text.append("\nYou are now at step ").append(std::to_string(steps_ + 1));
    text.append(" and your current observation is: ");
  }
  text.append(game_.observation()).append("\nYour admissible actions of the current situation are: [");
  bool first = true;
  for (const std::string& action : game_.admissible()) {
    if (action == "help") continue;
    text.append(first ? "'" : "\n '").append(action).append("'");
    first = false;
  }
  return text.append(kInstruction);
}

Reply AlfworldConversation::step(const PolicyResponse& response) {
  CARNOT_CHECK(!done_, "the episode is over");
  ProjectedAction projected = project_action(response.text);
  std::string before = game_.observation();
  const GameStep played = game_.step(projected.action);
  ++steps_;
  valid_steps_ += projected.valid ? 1 : 0;
  admissible_steps_ += played.valid ? 1 : 0;
  done_ = played.done || steps_ == options_.max_steps;
  recent_.push_back({std::move(before), std::move(projected.action)});
  if (recent_.size() > static_cast<std::size_t>(options_.history_length)) recent_.erase(recent_.begin());

  Reply reply{.form = ReplyForm::FreshPrompt,
              .reward = played.reward.value,
              .penalty = projected.valid ? 0 : -options_.penalty,
              .valid_action = projected.valid,
              .done = done_,
              .outcome = played.done ? Outcome::Finished : Outcome::OutOfTurns,
              .success = played.success};
  if (!done_) {
    reply.prompt.user = prompt();
    return reply;
  }
  reply.measures["actions"] = steps_;
  reply.measures["admissible_actions"] = static_cast<double>(admissible_steps_) / steps_;
  reply.measures["valid_turns"] = static_cast<double>(valid_steps_) / steps_;
  return reply;
}

}  // namespace carnot
