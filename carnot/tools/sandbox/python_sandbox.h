// tools/sandbox/python_sandbox.h -- Python code, each call in its own sandbox; interpreters wait, started ahead.
#pragma once

#include <memory>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/tools/sandbox/code.h"
#include "carnot/tools/sandbox/options.h"

namespace carnot {

/// Which of the machine's layers are used; for tests of what holds without the others.
struct SandboxTrial {
  bool namespaces = true;
  bool landlock = true;
  bool system_calls = true;
  unsigned as_user = 0;  ///< as if this user had started it; root only
};

class PythonSandbox final : public CodeRunner {
 public:
  /// Finds the interpreter, makes one sandbox with every layer that the machine has, with fewer where that fails, and
  /// starts others ahead. The error says why: no interpreter, no launcher, a module that cannot be imported, or a level
  /// below `options.least` with what was refused.
  static Result<std::shared_ptr<PythonSandbox>> open(const SandboxOptions& options, const SandboxTrial& trial = {});

  ~PythonSandbox() override;
  PythonSandbox(const PythonSandbox&) = delete;
  PythonSandbox& operator=(const PythonSandbox&) = delete;

  CodeResult run(const CodeCall& call) override;
  std::string description() const override { return shown(layers()); }

  const SandboxLayers& layers() const;

 private:
  class Pool;
  explicit PythonSandbox(std::unique_ptr<Pool> pool);
  std::unique_ptr<Pool> pool_;
};

}  // namespace carnot
