// cli/program.h -- runs the real binary, for tests of what a user sees.
#pragma once

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace carnot::testing {

struct ProgramRun {
  int exit = -1;  ///< -1: ended by a signal
  std::string out{};
  std::string err{};
  int signal = 0;          ///< what ended it
  bool timed_out = false;  ///< killed at the deadline
};

/// The surroundings of a program when it starts.
struct ProgramSetting {
  std::string input{};
  std::vector<std::string> environment{};  ///< NAME=value, next to the test's own
  std::vector<int> closed{};               ///< closed standard streams
  std::chrono::seconds deadline{0};        ///< killed then; 0: never
};

/// Runs build/carnot with these arguments and this standard input.
ProgramRun run_carnot(const std::vector<std::string>& arguments, const std::string& input = "");
ProgramRun run_carnot(const std::vector<std::string>& arguments, const ProgramSetting& setting);

/// A signal for the program, sent as soon as `ready` accepts the content of standard error, or after a minute.
struct TimedSignal {
  std::function<bool(const std::string& err)> ready{};
  int signal = SIGINT;
};

/// The same, with these signals one after the other.
ProgramRun signal_carnot(const std::vector<std::string>& arguments, const std::vector<TimedSignal>& signals);

/// The same with one signal.
ProgramRun interrupt_carnot(const std::vector<std::string>& arguments, const std::function<bool()>& ready,
                            int signal = SIGINT);

/// A port of this machine that was free a moment ago.
int free_port();

/// A new empty folder, removed with its content at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  /// Writes a file, folders above it included; returns its path.
  std::string write(const std::string& name, const std::string& content) const;
  std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace carnot::testing
