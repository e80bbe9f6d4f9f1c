// bench/processor_time.h -- processor time of a benchmark and of the processes that it starts.
#pragma once

#include <sys/resource.h>

namespace carnot {

/// Seconds, in user and in system mode, of this process and of its children that have ended.
inline double processor_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  }
  return sum;
}

}  // namespace carnot
