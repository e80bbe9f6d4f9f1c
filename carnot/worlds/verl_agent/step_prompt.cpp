#include "carnot/worlds/verl_agent/step_prompt.h"

#include <algorithm>

#include "carnot/core/base/utf8.h"
#include "carnot/worlds/python/python_text.h"

namespace carnot {
namespace {

std::string last_characters(std::string_view text, std::size_t count) {
  std::size_t begin = text.size();
  for (; count > 0 && begin > 0; --count) begin = last_character_begin(text.substr(0, begin));
  return std::string(text.substr(begin));
}

bool has_han(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = first_character(text);
    if (character.valid && character.code_point >= 0x4E00 && character.code_point <= 0x9FFF) return true;
    text.remove_prefix(static_cast<std::size_t>(character.length));
  }
  return false;
}

}  // namespace

VerlAgentAction read_verl_agent_action(std::string_view response, std::size_t fallback_characters) {
  constexpr std::string_view kOpen = "<action>", kClose = "</action>";
  const std::string lower = python_lower(response);
  const auto open = lower.find(kOpen), close = lower.find(kClose);
  if (open == std::string::npos || close == std::string::npos)
    return {.text = last_characters(lower, fallback_characters)};

  const auto begin = open + kOpen.size();
  VerlAgentAction action;
  if (begin < close) action.text = stripped(std::string_view(lower).substr(begin, close - begin));
  action.valid = response.find("<think>") != std::string_view::npos &&
                 response.find("</think>") != std::string_view::npos && !has_han(response);
  return action;
}

std::string verl_agent_memory(const std::vector<VerlAgentStep>& steps, std::size_t length) {
  std::string text;
  for (std::size_t i = steps.size() - std::min(length, steps.size()); i < steps.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    if (!text.empty()) text += '\n';
    text += "[Observation " + number + ": '" + steps[i].observation + "', Action " + number + ": '" + steps[i].action +
            "']";
  }
  return text;
}

}  // namespace carnot
