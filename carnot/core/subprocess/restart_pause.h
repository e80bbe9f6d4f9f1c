// subprocess/restart_pause.h -- when something that failed to start is tried again.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "carnot/core/subprocess/peer.h"

namespace carnot {

/// After 1 s, 2 s, 4 s and so on, up to 30 s. Not thread-safe.
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

}  // namespace carnot
