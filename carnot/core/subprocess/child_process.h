// subprocess/child_process.h -- a program started with pipes to its standard input, output and error.
//
// Between it and this process is carnot-supervisor (supervisor/main.cpp): whatever the program has started, orphans and
// new sessions included, is killed when the program ends, or when this process does, in any way.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"

namespace carnot {

struct ProgramCall {
  std::vector<std::string> command{};        ///< the program, found in PATH, and its arguments
  std::filesystem::path folder{};            ///< it runs there; empty: where this process runs
  std::vector<std::string> environment{};    ///< NAME=value each, besides and before this process's own variables
  std::chrono::milliseconds patience{1000};  ///< that it has to end by itself once this process is gone
};

/// Owns the process: it leads its own process group, so that Ctrl-C in a terminal does not reach it.
class ChildProcess {
 public:
  /// The error names the program and says why it could not be started.
  static Result<std::unique_ptr<ChildProcess>> start(const ProgramCall& call);

  /// Kills it and all that it started, and waits for that.
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

  /// SIGKILL to it and all that it started; does not wait. Any thread.
  void kill();

  /// How it ended: "exited with status 3", "was killed by signal 9". Empty if it, or anything that it started, still
  /// runs after `patience`. Any thread.
  std::optional<std::string> ended(std::chrono::milliseconds patience);

 private:
  explicit ChildProcess(pid_t supervisor) : supervisor_(supervisor) {}
  std::optional<std::string> reap();

  pid_t supervisor_, id_ = -1;
  Descriptor input_{}, output_{}, error_{};
  Descriptor presence_{};  // closed when this process ends
  std::mutex mutex_{};
  std::optional<std::string> end_{};  // once it is set, the number of the process may belong to another
};

}  // namespace carnot
