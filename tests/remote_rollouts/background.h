// remote_rollouts/background.h -- programs that run alongside a test: a NATS server, trainers, workers.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace carnot::testing {

/// A program that runs in the background and is killed at the end, with all that it writes in one file.
class Background {
 public:
  /// Starts it; `environment`: NAME=value, next to the test's own.
  Background(const std::vector<std::string>& words, const std::string& log,
             const std::vector<std::string>& environment = {});
  ~Background();
  Background(Background&& other) noexcept;
  Background& operator=(Background&& other) noexcept;

  void signal(int number) const;
  /// With SIGKILL.
  void kill();
  /// Its exit status; -1 where a signal ended it. After five minutes, kills it and returns -2.
  int wait();
  bool is_running();
  /// What it has written so far.
  std::string written() const;
  /// Whether it writes `text` within five minutes, and before it ends.
  bool writes(const std::string& text);

 private:
  bool reap(int flags);

  pid_t process_ = -1;
  int exit_ = -1;
  std::string log_;
};

/// nats-server with JetStream on a port of this machine.
class NatsServer {
 public:
  /// `further`: more arguments of the program.
  explicit NatsServer(const ScratchFolder& scratch, std::vector<std::string> further = {}, bool jetstream = true);

  std::string address(const std::string& name = "") const;
  /// Ends it abruptly, like a power cut.
  void kill() { server_.kill(); }
  /// Starts it again, with what it has stored, or with nothing.
  void restart(bool with_its_data = true);

 private:
  Background start();

  const ScratchFolder& scratch_;
  std::vector<std::string> further_;
  bool jetstream_;
  int port_;
  int starts_ = 0;
  int folder_ = 0;
  Background server_;
};

}  // namespace carnot::testing
