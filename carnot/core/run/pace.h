// run/pace.h -- how long the rest of some work takes, by what this process did of it. No clock of its own.
#pragma once

#include <cstdint>
#include <optional>

namespace carnot {

/// Units that an earlier process finished say nothing about this one's speed: they are left out.
class Pace {
 public:
  /// Work of `total` units, of which `done` were finished when it began at `now` (seconds of any clock).
  Pace(std::int64_t done, std::int64_t total, double now) : first_(done), done_(done), total_(total), began_(now) {}

  /// `done` of all units are finished by `now`.
  void update(std::int64_t done, double now);

  std::int64_t done() const { return done_; }
  std::int64_t total() const { return total_; }

  /// Seconds from `now` on, at the mean speed so far; none before a unit was finished here, or once all are.
  std::optional<double> seconds_left(double now) const;

 private:
  std::int64_t first_;
  std::int64_t done_;
  std::int64_t total_;
  double began_;
  double updated_ = 0;  ///< when `done_` was last reported
};

}  // namespace carnot
