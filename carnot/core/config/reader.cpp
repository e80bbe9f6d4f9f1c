#include "carnot/core/config/reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "carnot/core/base/file.h"
#include "carnot/core/base/nearest_word.h"
#include "carnot/core/config/numbers.h"

namespace carnot {
namespace {

using Kind = SettingValue::Kind;

constexpr std::size_t kMostKeysListed = 12;

std::string number_in_words(const std::string& noun, const Limits& limits) {
  const std::string accepted = describe(limits);
  return accepted.empty() ? noun : noun + " " + accepted;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// What was expected in place of `written`, which is not an integer or is too large.
std::string integer_in_words(const Limits& limits, const std::string& written) {
  const auto whole = parse_whole_number(written);
  const bool fits = whole && static_cast<double>(*whole) <= limits.high;
  if (fits || !(whole || is_digits(written))) return number_in_words("an integer", limits);
  if (limits.high == kLargestCount) {
    const std::string wrong = violation(limits, 2 * kLargestCount);
    return "an integer" + wrong.substr(std::string_view("a number").size());
  }
  return number_in_words("an integer", limits) + (whole ? "" : ", below 2^63");
}

/// The infinities are numbers to YAML, and to no field.
std::string number_in_words(const Limits& limits, std::optional<double> written) {
  return number_in_words(written && std::isinf(*written) ? "a finite number" : "a number", limits);
}

std::string text_in_words(const Limits& limits) {
  return limits.words.empty() ? "a string" : "one of " + describe(limits);
}

std::optional<double> number_of(const SettingValue::Scalar& scalar) {
  return scalar.quoted ? std::nullopt : parse_number(scalar.text);
}

/// Of a list, or the one item that is written without brackets; an empty text is an empty list.
std::span<const SettingValue::Scalar> items_of(const SettingValue& value) {
  const bool is_empty = value.kind == Kind::Scalar && value.items.front().text.empty();
  return is_empty ? std::span<const SettingValue::Scalar>() : value.items;
}

std::string_view last_word(std::string_view key) { return key.substr(key.rfind('.') + 1); }

std::string_view section_of(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
}

}  // namespace

void ConfigReader::enter(std::string_view section) {
  std::string key = prefixes_.back() + std::string(section);
  if (!section.empty()) {
    const Setting* setting = document_.find(key);
    if (setting != nullptr && setting->value.kind == Kind::Null) used_.insert(key);
    for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1))
      sections_.insert(key.substr(0, dot));
    sections_.insert(key);
    key += '.';
  }
  prefixes_.push_back(key);
}

void ConfigReader::leave() { prefixes_.pop_back(); }

void ConfigReader::begin_section(std::string_view name, std::string_view) { enter(name); }

void ConfigReader::end_section() { leave(); }

bool ConfigReader::skip(std::string_view section) {
  const std::string prefix = std::string(section) + ".";
  skipped_.insert(prefix);
  const auto first = document_.settings().lower_bound(prefix);
  return first != document_.settings().end() && first->first.starts_with(prefix);
}

const Setting* ConfigReader::visit(std::string_view name) {
  const std::string key = prefixes_.back() + std::string(name);
  fields_.insert(key);
  const Setting* setting = document_.find(key);
  if (setting != nullptr) used_.insert(setting->key);
  return setting;
}

void ConfigReader::report(const std::string& problem) {
  if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) problems_.push_back(problem);
}

void ConfigReader::expected(const Setting& setting, const std::string& what) {
  report(setting.shown() + ": expected " + what + ", found " + setting.value.shown());
}

void ConfigReader::refuse(std::string_view key, const std::string& what) {
  const Setting* setting = document_.find(key);
  const std::string start = setting != nullptr ? setting->shown() : std::string(key);
  for (const std::string_view line : split_lines(what)) report(start + ": " + std::string(line));
}

void ConfigReader::unread(std::string_view key, const std::string& why) {
  const Setting* setting = document_.find(key);
  if (setting == nullptr) return;
  used_.insert(setting->key);
  const bool asked_for = fields_.count(std::string(key)) > 0;
  if (asked_for && changed_.count(std::string(key)) == 0) return;
  const std::string message = "has no effect: " + why;
  if (unread_ == Unread::Refused || document_.is_override(*setting)) return refuse(key, message);
  passed_over_.push_back({.key = setting->key, .message = setting->shown() + ": " + message});
}

bool ConfigReader::outranked(std::string_view key, std::string_view by) {
  const Setting *lower = document_.find(key), *upper = document_.find(by);
  if (lower == nullptr || upper == nullptr || upper->layer <= lower->layer) return false;
  used_.insert(lower->key);
  return true;
}

template <class T>
void ConfigReader::set(std::string_view name, T& value, T parsed) {
  if (parsed != value) changed_.insert(prefixes_.back() + std::string(name));
  value = std::move(parsed);
}

void ConfigReader::field(std::string_view name, bool& value, std::string_view) {
  const Setting* setting = visit(name);
  if (setting == nullptr) return;
  const bool scalar = setting->value.kind == Kind::Scalar && !setting->value.items.front().quoted;
  const auto parsed = scalar ? parse_switch(setting->value.items.front().text) : std::nullopt;
  if (!parsed) return expected(*setting, "true or false");
  set(name, value, *parsed);
}

void ConfigReader::field(std::string_view name, std::int64_t& value, std::string_view, const Limits& limits) {
  const Setting* setting = visit(name);
  if (setting == nullptr) return;
  const bool scalar = setting->value.kind == Kind::Scalar && !setting->value.items.front().quoted;
  const auto parsed = scalar ? parse_whole_number(setting->value.items.front().text) : std::nullopt;
  const bool accepted = parsed && violation(limits, static_cast<double>(*parsed)).empty();
  const std::string written = scalar ? setting->value.items.front().text : std::string();
  if (!accepted) return expected(*setting, integer_in_words(limits, written));
  set(name, value, *parsed);
}

void ConfigReader::field(std::string_view name, double& value, std::string_view, const Limits& limits) {
  const Setting* setting = visit(name);
  if (setting == nullptr) return;
  const auto parsed = setting->value.kind == Kind::Scalar ? number_of(setting->value.items.front()) : std::nullopt;
  const bool accepted = parsed && violation(limits, *parsed).empty();
  if (!accepted) return expected(*setting, number_in_words(limits, parsed));
  set(name, value, *parsed);
}

void ConfigReader::field(std::string_view name, std::string& value, std::string_view, const Limits& limits) {
  const Setting* setting = visit(name);
  if (setting == nullptr) return;
  const bool accepted =
      setting->value.kind == Kind::Scalar && violation(limits, setting->value.items.front().text).empty();
  if (!accepted) return expected(*setting, text_in_words(limits));
  set(name, value, setting->value.items.front().text);
}

void ConfigReader::field(std::string_view name, std::vector<double>& value, std::string_view, const Limits& limits) {
  const Setting* setting = visit(name);
  if (setting == nullptr) return;
  bool accepted = setting->value.kind != Kind::Null;
  std::vector<double> parsed;
  for (const auto& item : items_of(setting->value)) {
    const auto number = number_of(item);
    accepted = accepted && number && violation(limits, *number).empty();
    parsed.push_back(number.value_or(0));
  }
  if (!accepted) return expected(*setting, "a list [...], each " + number_in_words("a number", limits));
  set(name, value, std::move(parsed));
}

void ConfigReader::field(std::string_view name, std::vector<std::string>& value, std::string_view,
                         const Limits& limits) {
  const Setting* setting = visit(name);
  if (setting == nullptr) return;
  bool accepted = setting->value.kind != Kind::Null;
  std::vector<std::string> parsed;
  for (const auto& item : items_of(setting->value)) {
    accepted = accepted && violation(limits, item.text).empty();
    parsed.push_back(item.text);
  }
  if (!accepted) return expected(*setting, "a list [...], each " + text_in_words(limits));
  set(name, value, std::move(parsed));
}

std::string ConfigReader::nearest(const std::string& key) const {
  const std::string_view word = last_word(key);
  const int most = std::max(1, static_cast<int>(word.size()) / 2);
  std::string best;
  int least = most + 1;
  for (const std::string& known : fields_) {
    int distance = edit_distance(key, known);
    if (last_word(known) == word) distance = std::min(distance, 2);  // the right word in the wrong section
    if (distance >= least) continue;
    least = distance;
    best = known;
  }
  return best;
}

/// The key of ours that goes by that name elsewhere, in the same section if it is there; or else the nearest.
std::string ConfigReader::meant(const std::string& key) const {
  const std::string familiar(familiar_key(last_word(key)));
  const std::string section(section_of(key));
  const std::string sibling = section + (section.empty() ? "" : ".") + std::string(last_word(familiar));
  if (!familiar.empty() && fields_.count(sibling) > 0) return sibling;
  return fields_.count(familiar) > 0 ? familiar : nearest(key);
}

std::string ConfigReader::unknown(const Setting& setting) const {
  const std::string start = setting.shown() + ": ";
  if (sections_.count(setting.key) > 0)
    return start + "expected a section with its own keys, found " + setting.value.shown();
  for (std::string_view above = section_of(setting.key); !above.empty(); above = section_of(above))
    if (fields_.count(std::string(above)) > 0) return start + std::string(above) + " takes a value, it is no section";

  const std::string suggestion = meant(setting.key);
  if (!suggestion.empty()) return start + "unknown key; did you mean " + suggestion + "?";
  const std::string section(section_of(setting.key));
  std::string known;
  std::size_t count = 0;
  for (const std::string& field : fields_)
    if (section_of(field) == section && ++count <= kMostKeysListed)
      known += (known.empty() ? "" : ", ") + std::string(last_word(field));
  if (known.empty()) return start + "unknown key";
  return start + "unknown key; known here: " + known + (count > kMostKeysListed ? ", ..." : "");
}

Status ConfigReader::finish() {
  std::vector<std::string> all = document_.problems();
  all.insert(all.end(), problems_.begin(), problems_.end());
  for (const auto& [key, setting] : document_.settings()) {
    const bool skipped = std::any_of(skipped_.begin(), skipped_.end(), [&key](const std::string& prefix) {
      return (key + ".").compare(0, prefix.size(), prefix) == 0;
    });
    if (!skipped && used_.count(key) == 0) all.push_back(unknown(setting));
  }
  if (all.empty()) return Done{};
  return join_errors(all);
}

}  // namespace carnot
