// tools/sandbox/launcher/child.h -- what a process that was forked off does before the program takes its place.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <exception>
#include <string>

#include "failure.h"
#include "plan.h"

namespace carnot::launcher {

inline constexpr int kSetupFailed = 126;

/// Never returns: what is not done is reported.
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
