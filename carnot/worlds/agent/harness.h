// worlds/agent/harness.h -- the process of one episode: an agent that somebody else wrote, told where its model is.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "carnot/core/subprocess/child_process.h"
#include "carnot/worlds/agent/episode.h"

namespace carnot {

struct HarnessCall {
  std::vector<std::string> command{};
  std::filesystem::path folder{};        ///< it runs there; empty: where this process runs
  std::vector<std::string> variables{};  ///< NAME=value, next to this process's own
  std::string task{};                    ///< a line for its standard input, which is closed after it
};

class Harness {
 public:
  /// Starts it. What it writes to standard error goes to the log; its end, and a reward in its last line, to the
  /// episode. The error says why it cannot be started.
  static Result<std::unique_ptr<Harness>> start(const HarnessCall& call, std::shared_ptr<AgentEpisode> episode);

  /// Kills it and what it started.
  ~Harness();
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;

 private:
  Harness(std::unique_ptr<ChildProcess> process, std::shared_ptr<AgentEpisode> episode, std::string task);
  void watch();
  void tell_end();
  bool write_task();

  std::unique_ptr<ChildProcess> process_;
  std::shared_ptr<AgentEpisode> episode_;
  std::string task_;  ///< what is not written yet
  std::string last_line_{};
  std::string last_error_line_{};
  std::thread thread_;
};

}  // namespace carnot
