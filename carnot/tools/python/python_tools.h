// tools/python/python_tools.h -- Python functions as tools, by python/carnot_tools.py: one process for all of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/env/tool.h"

namespace carnot {

struct PythonToolOptions {
  std::vector<std::string> functions{};  ///< FILE:FUNCTION each
  std::string python = "python3";
  double start_seconds = 60;
  double call_seconds = 30;
};

struct PythonTools {
  std::vector<std::shared_ptr<Tool>> tools{};  ///< in the order of the functions
  bool change_state = false;                   ///< one of them says that it does
};

/// Starts the process. The error names the function and says why it cannot be a tool: no such file, a parameter without
/// a type hint. A call throws PeerFailure where the process ends or hangs; the next one starts it again.
Result<PythonTools> start_python_tools(const PythonToolOptions& options);

}  // namespace carnot
