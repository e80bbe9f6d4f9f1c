// worlds/verl_agent/step_prompt.h -- what verl-agent's environments share: how a response is read, and the memory of
// past steps that each step's fresh prompt holds.
//
// (Feng et al., GiGPO, arXiv:2505.10978; the texts equal those of the authors' code.)
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

struct VerlAgentAction {
  std::string text{};  ///< in lower case
  bool valid = false;  ///< the form was kept; an action is carried out either way
};

/// Between the first `<action>` and the first `</action>` of the response in lower case, stripped; where one of them is
/// missing, the response's last `fallback_characters`, and not valid. Nor is a response without `<think>` or
/// `</think>`, or with a character from U+4E00 to U+9FFF.
VerlAgentAction read_verl_agent_action(std::string_view response, std::size_t fallback_characters);

struct VerlAgentStep {
  std::string observation{};  ///< before the action
  std::string action{};
};

/// `[Observation n: '...', Action n: '...']`, a line each, of the last `length` steps; n counts from 1.
std::string verl_agent_memory(const std::vector<VerlAgentStep>& steps, std::size_t length);

}  // namespace carnot
