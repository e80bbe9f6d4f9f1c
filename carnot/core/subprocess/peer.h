// subprocess/peer.h -- a program that answers requests: JSON objects over its standard input and output, one a line.
//
// Every request carries an `id`, every answer repeats it; answers may come in any order, so that many callers share
// one process. One that greets with `"batch": true` gets `{"calls": [...]}`: all requests that gathered while it was at
// work on the last ones. A process that ends, hangs or writes anything but answers is over: it is killed, whoever waits
// for it gets a PeerFailure, and the next caller of the pool (subprocess/peer_pool.h) gets a new process.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>

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

/// An answer, and where it stood, for messages about its fields.
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

  /// Sends what has no answer. Ignored if the process is over. Any thread.
  void tell(nlohmann::json notice);

  /// False once it has ended or was killed.
  bool is_alive() const;

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
  double call_seconds_ = 0;
  PeerAnswer greeting_{};
};

}  // namespace carnot
