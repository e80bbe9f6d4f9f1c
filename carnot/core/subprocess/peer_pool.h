// subprocess/peer_pool.h -- several processes of one program; a process that is over is replaced at the next call for
// one.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "carnot/core/subprocess/peer.h"

namespace carnot {

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
