#include "carnot/core/kernel/statistics/segments.h"

#include <algorithm>
#include <cmath>

namespace carnot::kernel {

RowStatistics statistics_of(std::span<const SegmentStatistics<float>> segments) {
  const auto largest = std::ranges::max_element(segments, {}, &SegmentStatistics<float>::maximum);
  const auto maximum = static_cast<double>(largest->maximum);
  double sum = 0, product = 0;
  for (const SegmentStatistics<float>& segment : segments) {
    const double shift = static_cast<double>(segment.maximum) - maximum, weight = std::exp(shift);
    sum += weight * static_cast<double>(segment.sum);
    product += weight * (static_cast<double>(segment.product) + shift * static_cast<double>(segment.sum));
  }
  const double log_sum = std::log(sum), entropy = log_sum - product / sum;
  return {.logsumexp = static_cast<float>(maximum + log_sum), .entropy = entropy < 0 ? 0 : static_cast<float>(entropy)};
}

}  // namespace carnot::kernel
