#include "carnot/chart/scale.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "carnot/base/check.h"

namespace carnot {
namespace {

constexpr double kTickDistance = 45;  ///< pixels, at least
constexpr int kMostTicks = 6;

/// Two values so close that steps between them are lost in rounding are one value.
constexpr double kRelativeWidth = 1e-9;

double nice_step(double width, int wanted) {
  const double rough = width / std::max(1, wanted);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  // The bounds are the geometric means of neighbours.
  if (rough < std::sqrt(2) * power) return power;
  if (rough < std::sqrt(10) * power) return 2 * power;
  if (rough < std::sqrt(50) * power) return 5 * power;
  return 10 * power;
}

std::string fixed(double value, int decimals) {
  std::array<char, 400> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  const std::string written(text.data(), end.ptr);
  const bool is_zero = written.find_first_not_of("-0.") == std::string::npos;
  return is_zero && written.front() == '-' ? written.substr(1) : written;
}

bool is_one_value(const Extent& extent) {
  const double size = std::max(std::abs(extent.low), std::abs(extent.high));
  return extent.high - extent.low <= kRelativeWidth * size;
}

Extent widened(const Extent& extent) {
  const double size = std::max(std::abs(extent.low), std::abs(extent.high));
  const double margin = size > 0 ? 0.1 * size : 1;
  return {extent.low - margin, extent.high + margin};
}

/// What the axis shows before it is moved out to ticks.
Extent shown(const Axis& axis, const std::optional<Extent>& data) {
  Extent extent = data ? *data : Extent{0, 1};
  if (axis.low) extent.low = *axis.low;
  if (axis.high) extent.high = *axis.high;
  if (axis.low && axis.high) return extent;
  if (axis.low && extent.high <= extent.low)
    return {extent.low, extent.low + std::max(1e-3, 0.1 * std::abs(extent.low))};
  if (axis.high && extent.low >= extent.high)
    return {extent.high - std::max(1e-3, 0.1 * std::abs(extent.high)), extent.high};
  return is_one_value(extent) ? widened(extent) : extent;
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int wanted) {
  CARNOT_CHECK(std::isfinite(low) && std::isfinite(high) && low < high, "an axis from a low to a high number");
  const double step = nice_step(high - low, wanted);
  const double slack = kRelativeWidth * (high - low);
  std::vector<double> ticks;
  for (double k = std::ceil((low - slack) / step); k * step <= high + slack; ++k) ticks.push_back(k * step);
  return ticks;
}

std::vector<std::string> tick_labels(std::span<const double> ticks, bool percent) {
  const double factor = percent ? 100 : 1;
  double step = 0, largest = 0;
  for (const double tick : ticks) largest = std::max(largest, std::abs(factor * tick));
  if (ticks.size() > 1) step = factor * (ticks[1] - ticks[0]);
  std::vector<std::string> labels;
  if (largest >= 1e7 || (step > 0 && step < 1e-6)) {
    for (const double tick : ticks) labels.push_back(number_text(factor * tick));
  } else {
    const int decimals =
        step > 0 ? std::max(0, static_cast<int>(-std::floor(std::log10(step * (1 + kRelativeWidth))))) : 2;
    for (const double tick : ticks) labels.push_back(fixed(factor * tick, decimals));
  }
  if (percent)
    for (std::string& label : labels) label += " %";
  return labels;
}

std::string number_text(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == 0) return "0";
  std::array<char, 64> text;
  const bool is_plain = std::abs(value) >= 1e-4 && std::abs(value) < 1e7;
  if (!is_plain) {
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 4);
    return {text.data(), end.ptr};
  }
  const int decimals = std::max(0, 3 - static_cast<int>(std::floor(std::log10(std::abs(value)))));
  std::string written = fixed(value, decimals);
  if (written.find('.') == std::string::npos) return written;
  written.erase(written.find_last_not_of('0') + 1);
  if (written.back() == '.') written.pop_back();
  return written;
}

std::optional<Extent> extent_of(std::span<const double> values) {
  std::optional<Extent> extent;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    if (!extent) extent = Extent{value, value};
    extent->low = std::min(extent->low, value);
    extent->high = std::max(extent->high, value);
  }
  return extent;
}

std::optional<Extent> joined(const std::optional<Extent>& a, const std::optional<Extent>& b) {
  if (!a || !b) return a ? a : b;
  return Extent{std::min(a->low, b->low), std::max(a->high, b->high)};
}

Scale::Scale(const Axis& axis, const std::optional<Extent>& data, double from, double to) : from_(from), to_(to) {
  const Extent extent = shown(axis, data);
  CARNOT_CHECK_LT(extent.low, extent.high);
  const int wanted = std::clamp(static_cast<int>(std::abs(to - from) / kTickDistance), 2, kMostTicks);
  const double step = nice_step(extent.high - extent.low, wanted);
  const double slack = kRelativeWidth * (extent.high - extent.low);
  low_ = axis.low ? extent.low : step * std::floor((extent.low + slack) / step);
  high_ = axis.high ? extent.high : step * std::ceil((extent.high - slack) / step);
  ticks_ = nice_ticks(low_, high_, wanted);
}

}  // namespace carnot
