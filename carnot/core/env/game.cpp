#include "carnot/core/env/game.h"

#include <array>
#include <charconv>
#include <cmath>

#include "carnot/core/base/json.h"

namespace carnot {

Reward operator+(const Reward& a, const Reward& b) {
  return {.value = a.value + b.value, .integer = a.integer && b.integer};
}

std::string python_number(const Reward& reward) {
  if (!std::isfinite(reward.value)) return std::isnan(reward.value) ? "nan" : reward.value > 0 ? "inf" : "-inf";
  const double size = std::fabs(reward.value);
  const bool plain = reward.integer || size == 0 || (size >= 1e-4 && size < 1e16);
  std::array<char, 400> buffer;
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), reward.value, format).ptr;
  std::string text(buffer.data(), end);
  if (plain && !reward.integer && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string json_text(std::string_view text) { return json_line(Json(text)); }

}  // namespace carnot
