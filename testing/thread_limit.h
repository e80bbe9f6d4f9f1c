// testing/thread_limit.h -- a process that can start few further threads, as under a pids limit. For death tests.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace carnot::testing {

/// From now on this process, which has one thread, can start `count` more at most. The limit counts all threads of a
/// user and does not bind root, so that root first becomes a user whom no other process has, as tests run side by side.
/// False if that is not allowed.
inline bool limit_new_threads(int count) {
  const auto nobody_else = static_cast<uid_t>(1'000'000'000 + getpid());
  if (geteuid() == 0 && setresuid(nobody_else, nobody_else, nobody_else) != 0) return false;
  const auto threads = static_cast<rlim_t>(1 + count);
  const rlimit limit{.rlim_cur = threads, .rlim_max = threads};
  return setrlimit(RLIMIT_NPROC, &limit) == 0;
}

}  // namespace carnot::testing
