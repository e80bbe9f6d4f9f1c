#include "carnot/base/fields.h"

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

/// A bound that says nothing but that the field is an int.
bool is_int_bound(double bound) {
  return bound == std::numeric_limits<int>::min() || bound == std::numeric_limits<int>::max();
}

}  // namespace

Limits at_least(double low) { return {.low = low}; }
Limits above(double low) { return {.low = low, .open_low = true}; }
Limits between(double low, double high) { return {.low = low, .high = high}; }
Limits one_of(std::vector<std::string> words) { return {.words = std::move(words)}; }

std::string describe(const Limits& limits) {
  if (!limits.words.empty()) {
    std::string all = limits.words.front();
    for (std::size_t i = 1; i < limits.words.size(); ++i) all += " | " + limits.words[i];
    return all;
  }
  std::string text;
  if (limits.low > -kInfinity && !is_int_bound(limits.low))
    text = (limits.open_low ? "above " : "at least ") + number(limits.low);
  if (limits.high < kInfinity && !is_int_bound(limits.high)) {
    if (!text.empty()) text += " and ";
    text += (limits.open_high ? "below " : "at most ") + number(limits.high);
  }
  return text;
}

std::string violation(const Limits& limits, double value) {
  const bool low = limits.open_low ? value > limits.low : value >= limits.low;
  const bool high = limits.open_high ? value < limits.high : value <= limits.high;
  const bool unlimited = limits.low == -kInfinity && limits.high == kInfinity;
  if (std::isnan(value)) return "a number, not NaN";
  if ((low && high) || unlimited) return "";
  const std::string accepted = describe(limits);
  return accepted.empty() ? "a number that fits in 32 bits" : "a number " + accepted;
}

std::string violation(const Limits& limits, std::string_view value) {
  const bool known = std::find(limits.words.begin(), limits.words.end(), value) != limits.words.end();
  if (limits.words.empty() || known) return "";
  return "one of " + describe(limits);
}

void FieldVisitor::field(std::string_view name, int& value, std::string_view help, Limits limits) {
  limits.low = std::max(limits.low, static_cast<double>(std::numeric_limits<int>::min()));
  limits.high = std::min(limits.high, static_cast<double>(std::numeric_limits<int>::max()));
  std::int64_t wide = value;
  field(name, wide, help, limits);
  value = static_cast<int>(wide);
}

}  // namespace carnot
