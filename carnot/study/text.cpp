#include "carnot/study/text.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "carnot/base/statistics.h"
#include "carnot/chart/scale.h"

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
  const double centre = mean(values);
  if (values.size() < 2) return number_text(centre);
  return number_text(centre) + " +- " + number_text(mean_interval(values).high - centre);
}

}  // namespace carnot
