// tools/sandbox/sandboxed_process.h -- one program in one sandbox: started ahead, given one request, and gone with it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/base/descriptor.h"
#include "carnot/tools/sandbox/code.h"
#include "carnot/tools/sandbox/options.h"

namespace carnot {

struct SandboxedProgram {
  std::string launcher{};
  SandboxLayers layers{};              ///< all of these, or it fails to start
  std::vector<std::string> command{};  ///< absolute path of the program, and its arguments
  std::vector<std::string> read{};     ///< absolute paths of folders that it may read
  SandboxOptions limits{};
  unsigned as_user = 0;  ///< started as if this user had done it, where not 0; for tests
};

class SandboxedProcess {
 public:
  /// Starts to start it. Throws SandboxFailure where the launcher cannot be started.
  explicit SandboxedProcess(const SandboxedProgram& program);

  /// Whatever still runs is killed.
  ~SandboxedProcess();
  SandboxedProcess(const SandboxedProcess&) = delete;
  SandboxedProcess& operator=(const SandboxedProcess&) = delete;

  /// Waits until the program says that it is ready. Throws LayerRefused where the sandbox cannot be made, and
  /// SandboxFailure with the program's last words where it ends or takes too long.
  void wait_until_ready(std::chrono::milliseconds patience);

  /// False once it, or what watches over it, has ended. Does not wait.
  bool is_alive() const;

  /// Has it run the call, and waits for the end of everything that the call has started. Once, when ready. Throws
  /// SandboxFailure where the sandbox itself was ended from outside.
  CodeResult run(const CodeCall& call);

 private:
  /// Writes to the launcher; throws SandboxFailure where that has ended.
  void order(const std::string& line);
  std::string report_line(std::chrono::steady_clock::time_point deadline);
  std::string last_words();
  void kill();
  void remove_folder();

  const SandboxOptions limits_;
  std::filesystem::path folder_{};
  pid_t id_ = -1;
  Descriptor input_{}, output_{}, error_{}, control_{}, report_{}, request_{}, remark_{};
};

}  // namespace carnot
