// tools/code/code_tool.h -- the built-in tools `python` and `code_interpreter`: code that a policy writes, run
// in a sandbox of this machine (tools/sandbox/python_sandbox.h) or by a server of SandboxFusion's API.
#pragma once

#include <memory>
#include <string>

#include "carnot/core/base/fields.h"
#include "carnot/core/env/tool.h"
#include "carnot/tools/sandbox/code.h"
#include "carnot/tools/sandbox/options.h"

namespace carnot {

struct CodeToolOptions {
  SandboxOptions sandbox{};
  std::string url{};       ///< of the server; empty: this machine
  bool show_last = false;  ///< print the value of a last line that is an expression

  void fields(FieldVisitor& visit);
};

/// Opens the sandbox, or reads the server's address. The error says what is missing.
Result<std::shared_ptr<CodeRunner>> open_code_runner(const CodeToolOptions& options);

/// A tool of that name with one argument, `code`. A call throws SandboxFailure where the machinery fails.
std::shared_ptr<Tool> make_code_tool(const std::string& name, std::shared_ptr<CodeRunner> runner,
                                     const CodeToolOptions& options);

/// What the policy reads: standard output, then standard error, then why it was stopped.
ToolResult code_tool_result(const CodeResult& result, const CodeToolOptions& options);

/// Without the fence that a model may write around its code: ```python ... ```.
std::string_view without_code_fence(std::string_view code);

}  // namespace carnot
