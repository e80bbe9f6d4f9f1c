// tools/sandbox/code.h -- code to be run, and how that went: what a runner of code takes and gives.
#pragma once

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace carnot {

/// One call: everything that it sees starts fresh, and nothing of it is left.
struct CodeCall {
  std::string code{};                          ///< Python, UTF-8
  std::string input{};                         ///< its standard input
  std::map<std::string, std::string> files{};  ///< in its working folder, by relative path
  bool show_last = false;                      ///< print the value of a last line that is an expression
  double seconds = 30;                         ///< by the wall's clock; the limits of who runs it hold as well
};

enum class CodeStatus {
  Ok,       ///< exit code 0
  Error,    ///< another exit code, or a signal
  Timeout,  ///< longer than allowed, by the wall's clock or the processor's
  Memory,   ///< more memory than allowed
  Refused,  ///< ended by what the sandbox does not allow: an operation, or more processes, files, bytes or code
};

/// "ok", "error", "timeout", "memory", "refused".
inline std::string_view word_of(CodeStatus status) {
  constexpr std::string_view kWords[] = {"ok", "error", "timeout", "memory", "refused"};
  return kWords[static_cast<std::size_t>(status)];
}

struct CodeResult {
  std::string standard_output{};  ///< valid UTF-8, as is the next
  std::string standard_error{};
  int exit_code = 0;  ///< 128 + N where signal N ended it
  CodeStatus status = CodeStatus::Ok;
  double seconds = 0;      ///< from the call to its end
  bool truncated = false;  ///< one of the outputs was longer than allowed: this is its beginning
};

/// The machinery failed: no sandbox can be started, or one was killed from outside. Never the code's fault.
class SandboxFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A layer of the sandbox that the system refused.
class LayerRefused : public SandboxFailure {
 public:
  using SandboxFailure::SandboxFailure;
};

/// Runs code, any number of calls at once.
class CodeRunner {
 public:
  virtual ~CodeRunner() = default;

  /// Throws SandboxFailure. Any thread.
  virtual CodeResult run(const CodeCall& call) = 0;

  /// What keeps the code in: "isolated (namespaces, Landlock 7, system calls, limits)", or where it runs.
  virtual std::string description() const = 0;
};

}  // namespace carnot
