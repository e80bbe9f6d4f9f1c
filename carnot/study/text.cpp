#include "carnot/study/text.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "carnot/chart/table.h"
#include "carnot/study/estimate.h"

namespace carnot {

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
  return number_text(estimate.mean) + " ± " + number_text(estimate.interval->high - estimate.mean);
}

}  // namespace carnot
