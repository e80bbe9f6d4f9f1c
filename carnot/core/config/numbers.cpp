#include "carnot/core/config/numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace carnot {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// from_chars takes no '+', and takes words ("inf", "nan") that are no numbers in a recipe.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <class Number>
std::optional<Number> read_all(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  text = without_plus(text);
  if (text == ".inf") return kInfinity;
  if (text == "-.inf") return -kInfinity;
  const auto value = read_all<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_whole_number(std::string_view text) {
  text = without_plus(text);
  if (const auto whole = read_all<std::int64_t>(text)) return whole;
  constexpr double kExactlyRepresentable = 9007199254740992.0;  // 2^53
  const auto value = parse_number(text);
  if (!value || std::abs(*value) > kExactlyRepresentable || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<bool> parse_switch(std::string_view text) {
  if (text == "true" || text == "True" || text == "yes" || text == "on") return true;
  if (text == "false" || text == "False" || text == "no" || text == "off") return false;
  return std::nullopt;
}

std::string write_number(double value) {
  if (value == kInfinity) return ".inf";
  if (value == -kInfinity) return "-.inf";
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc() ? std::string(buffer.data(), end) : std::string();
}

}  // namespace carnot
