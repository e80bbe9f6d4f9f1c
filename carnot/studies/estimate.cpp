#include "carnot/studies/estimate.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "carnot/view/chart/table.h"

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

std::string percent_text(double share) {
  if (!std::isfinite(share)) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

std::string share_text(std::int64_t part, std::int64_t whole) {
  return std::to_string(part) + " of " + std::to_string(whole) + " (" +
         percent_text(static_cast<double>(part) / static_cast<double>(whole)) + ")";
}

std::string mean_text(std::span<const double> values) {
  if (values.empty()) return "-";
  const Estimate estimate = estimate_of(values);
  if (!estimate.interval) return number_text(estimate.mean);
  const double half = estimate.interval->high - estimate.mean;
  const bool rounding = half < 1e-12 * std::abs(estimate.mean);
  return number_text(estimate.mean) + " ± " + number_text(rounding ? 0 : half);
}

}  // namespace carnot
