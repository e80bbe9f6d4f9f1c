#include "carnot/core/base/fields.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace carnot {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string number(double value) {
  std::ostringstream out;
  out << std::setprecision(15) << value;
  return out.str();
}

/// True for bounds that only say that the field is a count.
bool is_count_bound(double bound) { return std::abs(bound) == kLargestCount; }

enum class CountBounds { LeftOut, Named };

std::string range_in_words(const Limits& limits, CountBounds counts) {
  const auto is_named = [&](double bound) {
    return std::isfinite(bound) && (counts == CountBounds::Named || !is_count_bound(bound));
  };
  std::string text;
  if (is_named(limits.low)) text = (limits.open_low ? "above " : "at least ") + number(limits.low);
  if (is_named(limits.high)) {
    if (!text.empty()) text += " and ";
    text += (limits.open_high ? "below " : "at most ") + number(limits.high);
  }
  return text;
}

}  // namespace

Limits at_least(double low) { return {.low = low}; }
Limits above(double low) { return {.low = low, .open_low = true}; }
Limits between(double low, double high) { return {.low = low, .high = high}; }
Limits count_from(double low) { return between(low, kLargestCount); }
Limits one_of(std::vector<std::string> words) { return {.words = std::move(words)}; }

std::string describe(const Limits& limits) {
  if (limits.words.empty()) return range_in_words(limits, CountBounds::LeftOut);
  std::string all = limits.words.front();
  for (std::size_t i = 1; i < limits.words.size(); ++i) all += " | " + limits.words[i];
  return all;
}

std::string violation(const Limits& limits, double value) {
  const bool low = limits.open_low ? value > limits.low : value >= limits.low;
  const bool high = limits.open_high ? value < limits.high : value <= limits.high;
  const std::string accepted = describe(limits);
  if (!std::isfinite(value)) return accepted.empty() ? "a finite number" : "a finite number " + accepted;
  if (low && high) return "";
  // Beyond the largest count, the bound that goes without saying is the one that matters.
  return "a number " + (std::abs(value) > kLargestCount ? range_in_words(limits, CountBounds::Named) : accepted);
}

std::string violation(const Limits& limits, std::string_view value) {
  const bool known = std::find(limits.words.begin(), limits.words.end(), value) != limits.words.end();
  if (limits.words.empty() || known) return "";
  return "one of " + describe(limits);
}

void FieldVisitor::field(std::string_view name, int& value, std::string_view help, Limits limits) {
  limits.low = std::max(limits.low, -kLargestCount);
  limits.high = std::min(limits.high, kLargestCount);
  std::int64_t wide = value;
  field(name, wide, help, limits);
  value = static_cast<int>(wide);
}

}  // namespace carnot
