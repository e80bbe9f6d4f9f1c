// base/statistics.h -- means, the two standard deviations (by name), and intervals.
//
// There is no `std`: for groups of 8, the population's (divide by n) and the sample's (divide by n - 1) differ
// by 7 %, and published code uses both.
#pragma once

#include <span>

namespace carnot {

/// Mean; 0 if empty.
double mean(std::span<const double> values);

/// sqrt(sum (x - mean)^2 / n); 0 if empty.
double std_population(std::span<const double> values);

/// sqrt(sum (x - mean)^2 / (n - 1)); 0 for fewer than two values.
double std_sample(std::span<const double> values);

/// True if all values are exactly equal (also for none and one).
bool all_equal(std::span<const double> values);

struct Interval {
  double low = 0;
  double high = 0;
};

/// 95 % Wilson score interval of a success rate. With no trials: [0, 1]. The counts need not be integers, because
/// dependent trials count as fewer.
Interval wilson_interval(double successes, double n);

/// 95 % Student-t interval of a mean; [mean, mean] for fewer than two values.
Interval mean_interval(std::span<const double> values);

}  // namespace carnot
