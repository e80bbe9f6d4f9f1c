// base/no_pipe_signal.h -- turns writing to a closed pipe or connection into an error instead of a signal that ends the
// program.
#pragma once

#include <csignal>
#include <ctime>

namespace carnot {

/// Blocks SIGPIPE for this thread during its lifetime.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const timespec at_once{};
    if (!was_pending_) (void)::sigtimedwait(&pipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

}  // namespace carnot
