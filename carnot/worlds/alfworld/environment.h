// worlds/alfworld/environment.h -- ALFWorld as verl-agent (GiGPO, AEM) has a policy play it, or as a bare transcript.
//
// With verl-agent every step is its own conversation: one user message with the task, the last observations and
// actions, the present observation and the admissible actions. A transcript is one growing conversation of observations
// alone, as ReAct shows the game (Yao et al. 2023): the room and the task, then what each action is answered with.
// The policy answers `<think>...</think><action>go to desk 1</action>`. Any action is carried out, whatever its form; a
// response without the form costs the penalty. An action that is not admissible costs a step and no more.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/core/env/plain_view.h"
#include "carnot/worlds/alfworld/game.h"
#include "carnot/worlds/verl_agent/step_prompt.h"

namespace carnot {

struct AlfworldConversationOptions {
  int max_steps = 50;
  int history_length = 2;   ///< past steps that a prompt of verl-agent shows
  bool transcript = false;  ///< one growing conversation, without the admissible actions
  double penalty = 0.1;
  int max_response_tokens = 512;
};

class AlfworldConversation final : public Environment, public PlainlyShown {
 public:
  AlfworldConversation(const AlfworldConversationOptions& options, Alfworld game);

  Protocol protocol() const override;
  Opening open() override;
  /// Measures at the end: "actions", "admissible_actions" (share) and "valid_turns" (share).
  Reply step(const PolicyResponse& response) override;
  /// The present observation, as in GiGPO: no history, no list of actions.
  std::string anchor() const override { return game_.observation(); }
  std::map<std::string, std::string> info() const override;
  Branching branching() const override { return Branching::Cloned; }
  PlainView plain_view() const override;
  std::unique_ptr<Environment> clone() const override { return std::make_unique<AlfworldConversation>(*this); }

  const Alfworld& game() const { return game_; }

 private:
  Opening step_prompt() const;
  Opening transcript_opening() const;

  AlfworldConversationOptions options_;
  Alfworld game_;
  std::vector<VerlAgentStep> steps_{};
  int valid_steps_ = 0;
  int admissible_steps_ = 0;
  bool done_ = false;
};

/// Of a game, for reports: "game", "split", "task_type", "task".
std::map<std::string, std::string> alfworld_info(const AlfworldTask& task);

}  // namespace carnot
