#include "carnot/core/base/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

double sum_of_squares_around(std::span<const double> values, double centre) {
  double sum = 0;
  for (double x : values) sum += (x - centre) * (x - centre);
  return sum;
}

// 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
constexpr std::array kStudent = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                 2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                 2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kNormal = 1.959964;

}  // namespace

double mean(std::span<const double> values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (double x : values) sum += x;
  return sum / static_cast<double>(values.size());
}

double std_population(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::sqrt(sum_of_squares_around(values, mean(values)) / static_cast<double>(values.size()));
}

double std_sample(std::span<const double> values) {
  if (values.size() < 2) return 0;
  return std::sqrt(sum_of_squares_around(values, mean(values)) / static_cast<double>(values.size() - 1));
}

bool all_equal(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [&](double x) { return x == values.front(); });
}

Interval wilson_interval(double successes, double n) {
  CARNOT_CHECK_GE(successes, 0);
  CARNOT_CHECK_LE(successes, n);
  if (n == 0) return {0, 1};
  const double p = successes / n;
  const double z2 = kNormal * kNormal;
  const double centre = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kNormal * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n);
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

Interval mean_interval(std::span<const double> values) {
  const double centre = mean(values);
  if (values.size() < 2) return {centre, centre};
  const std::size_t freedom = values.size() - 1;
  const double t = freedom <= kStudent.size() ? kStudent[freedom - 1] : kNormal;
  const double half = t * std_sample(values) / std::sqrt(static_cast<double>(values.size()));
  return {centre - half, centre + half};
}

}  // namespace carnot
