// worlds/agent/environment.h -- agents that were written elsewhere: a harness per episode, whose model is the policy.
//
// The environment of a policy is whatever answers it. Here that is the harness: its first call of OpenAI's API opens
// the conversation, and every further call is the answer to what the policy said before. docs/agents.md is the manual.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/env/environment.h"

namespace carnot {

struct AgentOptions {
  std::vector<std::string> command{};
  std::string folder{};
  std::string train_file{}, test_file{};
  int port = 0;
  double timeout = 60;
  double start_timeout = 100;
  int max_turns = 50;
  int max_response_tokens = 1024;

  void fields(FieldVisitor& visit);
};

std::unique_ptr<EnvironmentFactory> make_agent();

}  // namespace carnot
