// env/react.h -- any environment, played in ReAct's form: thought, action, observation (Yao et al. 2023,
// arXiv:2210.03629).
//
//   Thought: I have to find a mug first.
//   Action: go to desk 1
//   Observation: On the desk 1, you see a mug 1.
//
// The policy writes thought and action; the observation is the next user message. An action goes to the environment
// beneath in that one's own form: between its tags, as a tool call, or as its final answer. Rewards, successes, budgets
// of turns and measures are the environment's own, so that results compare with those of its prompt.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "carnot/core/env/environment.h"

namespace carnot {

/// What a response says.
struct ReactStep {
  std::string thought{};
  std::string action{};    ///< all of it: "go to desk 1", "Search[who wrote Emma]"
  std::string name{};      ///< of NAME[...]; empty if the action has not that form
  std::string argument{};  ///< in the brackets: up to the last `]`, of several lines too
};

/// The first "Action:" (or "Action 3:") that begins a line, and before it the thought. Without the thoughts that some
/// models put before </think>, and up to an "Observation:" that the model invents. Nothing without an action.
std::optional<ReactStep> parse_react(std::string_view response);

/// `environment` in ReAct's form. `answer_lead`: what is before a final answer in the environment's own form
/// (EnvironmentFactory::answer_lead()); empty: its action tag, or nothing.
std::unique_ptr<Environment> make_react(std::unique_ptr<Environment> environment, const std::string& answer_lead);

/// The same for every task of a factory, which has been prepared.
std::unique_ptr<EnvironmentFactory> make_react_factory(std::unique_ptr<EnvironmentFactory> beneath,
                                                       const std::string& answer_lead);

}  // namespace carnot
