// remote_rollouts/worker.h -- the command `carnot worker`: rolls out a trainer's tasks until it is asked to stop.
//
// Trainer and worker meet at a NATS server. The worker takes a task on lease, rolls it out with the weights that the
// task names, hands the result to the trainer and takes the task off the queue. A worker that dies in between loses its
// lease, and another one computes the same.
#pragma once

#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/run/run.h"
#include "carnot/remote_rollouts/transport/address.h"

namespace carnot {

struct WorkerRequest {
  std::string address{};  ///< nats://HOST:PORT[/NAME]
  std::string
      key_variable{};  ///< environment variable with the key of the trainer's HTTP server; empty: none is needed
  BrokerKeys keys{};
  int threads = -1;         ///< of the kernels; -1: as the trainer's recipe says
  std::string serve{};      ///< HOST[:PORT] that it serves weights on to other workers; empty: it does not
  std::string serve_url{};  ///< under which they reach it; empty: host and port
  bool one_run = false;     ///< ends with the trainer's run
};

/// Waits for broker and trainer, however often they go and come. What it holds is given back where
/// `control.stop_requested` ends it, and that is no failure. The error says why it cannot work for this trainer:
/// another version or kernel set, a wrong key, an environment that is not there.
Status run_worker(const WorkerRequest& request, const RunControl& control);

}  // namespace carnot
