#include "carnot/core/alarm/reading.h"

#include <cmath>
#include <cstdio>

namespace carnot {

std::optional<double> AlarmInput::metric(const std::string& name) const {
  const auto found = metrics.find(name);
  if (found == metrics.end() || !std::isfinite(found->second)) return std::nullopt;
  return found->second;
}

std::optional<double> AlarmInput::environment(const std::string& name) const {
  return metric("env/" + setting.environment + "/" + name);
}

bool AlarmInput::is_on(const std::string& alarm) const {
  const auto found = memory.find(alarm + "/on");
  return found != memory.end() && found->second != 0;
}

std::string in_words(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string in_percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

}  // namespace carnot
