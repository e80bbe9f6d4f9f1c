// subprocess/peer.h -- a program that answers requests: JSON objects over its standard input and output, one per line.
//
// Every request carries an `id`, every answer repeats it; answers may come in any order, so that many callers share
// one process. One that greets with `"batch": true` gets `{"calls": [...]}`: all requests that gathered while it was at
// work on the last ones. A process that ends, hangs or writes anything but answers is over: it is killed, its callers
// get a PeerFailure, and the next caller of the pool gets a new process.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "carnot/core/subprocess/child_process.h"

namespace carnot {

struct PeerOptions {
  std::string name{};  ///< in messages and in the log
  ProgramCall program{};
  double start_seconds = 60;  ///< from the start to the answer to the first request
  double call_seconds = 60;   ///< of every other request
};

/// The other side failed: the process ended, did not answer in time, or broke the protocol. Never the policy's fault.
class PeerFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An answer, and where it was, for messages about its fields.
struct PeerAnswer {
  std::shared_ptr<const nlohmann::json> value{};  ///< an object
  std::string where{};                            ///< "NAME (process 71), line 12"
};

class Peer {
 public:
  /// Starts the program and sends it `greeting`, an object. Throws PeerFailure.
  Peer(const PeerOptions& options, nlohmann::json greeting);
  /// Closes its standard input, gives it half a second to end, and kills it then.
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// The answer to the greeting.
  const PeerAnswer& greeting() const { return greeting_; }

  /// Sends `request`, an object, and waits for its answer. Throws PeerFailure, also where the answer has an `error`
  /// that is not null: then the process lives on. Any thread.
  PeerAnswer call(nlohmann::json request);

  /// Sends what has no answer; nothing to a process that is over. Any thread.
  void tell(nlohmann::json notice);

  /// False once it has ended or was killed.
  bool is_alive() const;

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
  double call_seconds_ = 0;
  PeerAnswer greeting_{};
};

/// When something that failed to start is tried again: after 1 s, 2 s, 4 s and so on, up to 30 s. Not thread-safe.
class RestartPause {
 public:
  /// Throws the last failure where it is too early.
  void check() const {
    if (std::chrono::steady_clock::now() < next_try_) throw PeerFailure(failure_);
  }
  void failed(const std::string& why) {
    failure_ = why;
    next_try_ = std::chrono::steady_clock::now() +
                std::chrono::seconds(std::min(1 << std::min(failures_++, 5), kLongestSeconds));
  }
  void succeeded() { failures_ = 0; }

 private:
  static constexpr int kLongestSeconds = 30;
  int failures_ = 0;  // in a row
  std::chrono::steady_clock::time_point next_try_{};
  std::string failure_{};
};

/// Several processes of one program; one that is over is replaced when it is next taken.
class PeerPool {
 public:
  /// Starts nothing yet. REQUIRES: processes >= 1.
  PeerPool(PeerOptions options, nlohmann::json greeting, int processes);
  ~PeerPool();

  /// Starts every process that does not run. The error is the first failure's.
  Status start();

  /// The process that the fewest others hold, started again where it is over. A program that fails to start is tried
  /// again after 1 s, 2 s, 4 s and so on, up to 30 s, and every call in between fails at once. Throws PeerFailure. Any
  /// thread.
  std::shared_ptr<Peer> take();

 private:
  struct Slot;
  std::shared_ptr<Peer> live_peer(Slot& slot);

  PeerOptions options_;
  std::unique_ptr<const nlohmann::json> greeting_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace carnot
