// testing/thread_limit.h -- a process that can start few further threads, as under a pids limit. For death tests.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace carnot::testing {

/// From now on this process, which has one thread, can start `count` more at most. The limit counts all threads of a
/// user and does not bind root, so that root becomes nobody first. False where that is not allowed.
inline bool limit_new_threads(int count) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return false;
  const auto threads = static_cast<rlim_t>(1 + count);
  const rlimit limit{.rlim_cur = threads, .rlim_max = threads};
  return setrlimit(RLIMIT_NPROC, &limit) == 0;
}

}  // namespace carnot::testing
