// base/stopwatch.h -- elapsed time, by a monotonic clock.
#pragma once

#include <chrono>

namespace carnot {

class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  Stopwatch() = default;
  explicit Stopwatch(Clock::time_point start) : start_(start) {}

  /// Seconds since construction or the last lap.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  /// Returns seconds() and restarts the clock.
  double lap() {
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - start_).count();
    start_ = now;
    return seconds;
  }

 private:
  Clock::time_point start_ = Clock::now();
};

}  // namespace carnot
