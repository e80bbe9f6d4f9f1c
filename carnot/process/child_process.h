// process/child_process.h -- a program started with pipes to its standard input, output and error.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "carnot/base/descriptor.h"
#include "carnot/base/result.h"

namespace carnot {

struct ProgramCall {
  std::vector<std::string> command{};      ///< the program, found in PATH, and its arguments
  std::filesystem::path folder{};          ///< it runs there; empty: where this process runs
  std::vector<std::string> environment{};  ///< NAME=value each, besides and before this process's own variables
};

/// Owns the process: it leads a process group of its own, so that Ctrl-C in a terminal does not reach it.
class ChildProcess {
 public:
  /// The error names the program and says why it could not be started.
  static Result<std::unique_ptr<ChildProcess>> start(const ProgramCall& call);

  /// Kills the whole process group and waits for the child.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Our ends of the pipes, non-blocking.
  int standard_input() const { return input_.get(); }
  int standard_output() const { return output_.get(); }
  int standard_error() const { return error_.get(); }

  /// Tells it that nothing more will come.
  void close_input() { (void)input_.close(); }

  pid_t id() const { return id_; }

  /// SIGKILL to the process group. Any thread.
  void kill();

  /// How it ended: "exited with status 3", "was killed by signal 9". None where it still runs after `patience`. What it
  /// left behind in its process group is killed. Any thread.
  std::optional<std::string> ended(std::chrono::milliseconds patience);

 private:
  ChildProcess() = default;
  std::optional<std::string> reap();

  pid_t id_ = -1;
  Descriptor input_{}, output_{}, error_{};
  std::mutex mutex_{};
  std::optional<std::string> end_{};  // once it is set, the number of the process may belong to another
};

}  // namespace carnot
