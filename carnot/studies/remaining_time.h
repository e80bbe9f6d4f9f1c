// studies/remaining_time.h -- how long a comparison will still take, by what it has done so far.
#pragma once

#include <cstdint>
#include <optional>

namespace carnot {

/// The one estimate that a comparison prints. Runs and starts have a mean each: every seed has one start and
/// many runs, which take longer.
class RemainingTime {
 public:
  void add_start(double seconds) { starts_.add(seconds); }
  void add_run(double seconds) { runs_.add(seconds); }

  /// Seconds for what is still to do. Empty before a run was timed; until a start was, one counts as long as a run.
  std::optional<double> estimate(std::int64_t starts, std::int64_t runs) const {
    if (runs_.count == 0) return std::nullopt;
    const double start = starts_.count > 0 ? starts_.mean() : runs_.mean();
    return static_cast<double>(starts) * start + static_cast<double>(runs) * runs_.mean();
  }

 private:
  struct Timed {
    double seconds = 0;
    std::int64_t count = 0;

    void add(double more) {
      seconds += more;
      ++count;
    }
    double mean() const { return seconds / static_cast<double>(count); }
  };

  Timed starts_{};
  Timed runs_{};
};

}  // namespace carnot
