// study/estimate.h -- a mean over seeds with its 95 % interval, and the paired difference of two methods.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "carnot/base/statistics.h"

namespace carnot {

struct Estimate {
  std::int64_t count = 0;
  double mean = 0;
  std::optional<Interval> interval{};  ///< Student's t with count - 1 degrees of freedom; none of fewer than two values

  /// True where there is an interval and 0 lies outside.
  bool excludes_zero() const { return interval && (interval->low > 0 || interval->high < 0); }
};

/// Of values that are independent of each other, one per seed.
Estimate estimate_of(std::span<const double> values);

/// Values by seed.
using BySeed = std::map<std::int64_t, double>;

Estimate estimate_of(const BySeed& values);

/// Of the differences `values` - `base` on the seeds that both have: what the seed itself does to both cancels.
Estimate paired_difference(const BySeed& values, const BySeed& base);

}  // namespace carnot
