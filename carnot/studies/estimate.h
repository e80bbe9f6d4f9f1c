// studies/estimate.h -- a mean over seeds with its 95 % interval, the paired difference of two methods, and both in
// words.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "carnot/core/base/statistics.h"

namespace carnot {

/// Values below which there is no interval. With two, Student's t is 12.7 standard errors wide to each side,
/// and two values that happen to be equal have a deviation of 0.
inline constexpr std::int64_t kFewestForInterval = 3;

struct Estimate {
  std::int64_t count = 0;
  double mean = 0;
  std::optional<Interval> interval{};  ///< Student's t with count - 1 degrees of freedom; none of fewer than three

  /// True if the interval has a width and 0 lies outside: values that are all equal tell nothing of their spread.
  bool excludes_zero() const {
    return interval && interval->low < interval->high && (interval->low > 0 || interval->high < 0);
  }
};

/// Of values that are independent of each other, one per seed.
Estimate estimate_of(std::span<const double> values);

/// Values by seed.
using BySeed = std::map<std::int64_t, double>;

Estimate estimate_of(const BySeed& values);

/// Of the differences `values` - `base` on the seeds that both have: what the seed itself does to both cancels.
Estimate paired_difference(const BySeed& values, const BySeed& base);

// In words.

/// "85.9 %"; "-" of nothing.
std::string percent_text(double share);

/// "55 of 64 (85.9 %)"
std::string share_text(std::int64_t part, std::int64_t whole);

/// "0.412 ± 0.031": mean and half of its 95 % interval; the mean alone of fewer than three.
std::string mean_text(std::span<const double> values);

}  // namespace carnot
