// worlds/process/environment.h -- an environment in any language: a program that Carnot starts and talks to in JSON.
//
// docs/process_environments.md has every message. python/carnot_environment.py is the other side, for Python.
// Several episodes share a process and there may be several processes; one that ends, hangs or breaks the protocol is
// started again, and the episodes that it held are infrastructure failures.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/worlds/tool_use/tool_use.h"

namespace carnot {

struct ProcessOptions {
  std::vector<std::string> command{};
  std::string folder{};
  std::vector<std::string> settings{};
  int processes = 1;
  double timeout = 60;
  double start_timeout = 120;
  int max_turns = 0;
  int max_response_tokens = 0;
  ToolUseOptions tool_use{};

  void fields(FieldVisitor& visit);
};

std::unique_ptr<EnvironmentFactory> make_process();

}  // namespace carnot
