// testing/thread_limit.h -- limits how many more threads a process can start, as a pids limit does. For death tests.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace carnot::testing {

/// From now on this process, which has one thread, can start `count` more at most. The limit counts all threads of a
/// user and does not bind root, so root first becomes a user that has no other process, because tests run concurrently.
/// False if that is not allowed.
inline bool limit_new_threads(int count) {
  const auto nobody_else = static_cast<uid_t>(1'000'000'000 + getpid());
  if (geteuid() == 0 && setresuid(nobody_else, nobody_else, nobody_else) != 0) return false;
  const auto threads = static_cast<rlim_t>(1 + count);
  const rlimit limit{.rlim_cur = threads, .rlim_max = threads};
  return setrlimit(RLIMIT_NPROC, &limit) == 0;
}

}  // namespace carnot::testing
