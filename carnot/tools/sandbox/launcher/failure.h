// tools/sandbox/launcher/failure.h -- a step of setting up the sandbox that the system refused, and how it is reported.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "plan.h"

namespace carnot::launcher {

class SetupFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws what was tried and the system's reason (errno).
[[noreturn]] inline void refuse(const std::string& what) { throw SetupFailure(what + ": " + std::strerror(errno)); }

inline void need(bool done, const char* what) {
  if (!done) refuse(what);
}
inline void need(bool done, const std::string& what) {
  if (!done) refuse(what);
}

inline constexpr int kSetupFailed = 126;

/// What a process that was forked off does before the program takes its place. Never returns: a failure is reported.
template <class Steps>
[[noreturn]] void run_child(Steps steps) {
  try {
    steps();
  } catch (const std::exception& failure) {
    const std::string line = std::string("failed ") + failure.what() + "\n";
    (void)!::write(kReport, line.data(), line.size());
  }
  ::_exit(kSetupFailed);
}

inline void make_pipe(int (&ends)[2]) { need(::pipe2(ends, O_CLOEXEC) == 0, "make a pipe"); }

}  // namespace carnot::launcher
