#include "carnot/study/estimate.h"

#include <vector>

namespace carnot {

Estimate estimate_of(std::span<const double> values) {
  Estimate estimate{.count = static_cast<std::int64_t>(values.size()), .mean = mean(values)};
  if (estimate.count >= kFewestForInterval) estimate.interval = mean_interval(values);
  return estimate;
}

Estimate estimate_of(const BySeed& values) {
  std::vector<double> plain;
  for (const auto& [seed, value] : values) plain.push_back(value);
  return estimate_of(plain);
}

Estimate paired_difference(const BySeed& values, const BySeed& base) {
  std::vector<double> differences;
  for (const auto& [seed, value] : values)
    if (const auto found = base.find(seed); found != base.end()) differences.push_back(value - found->second);
  return estimate_of(differences);
}

}  // namespace carnot
