#include "testing/field_settings.h"

#include <sstream>
#include <stdexcept>

namespace carnot::testing {
namespace {

void refuse(const std::string& what) {
  if (!what.empty()) throw std::invalid_argument("expected " + what);
}

}  // namespace

const std::string* FieldSettings::find(std::string_view name, std::string_view help) {
  const std::string full = prefix_ + std::string(name);
  names_.push_back(full);
  if (help.empty()) undocumented_.push_back(full);
  const auto found = values_.find(full);
  if (found == values_.end()) return nullptr;
  used_.insert(full);
  return &found->second;
}

void FieldSettings::field(std::string_view name, bool& value, std::string_view help) {
  if (const std::string* text = find(name, help)) value = *text == "true";
}

void FieldSettings::field(std::string_view name, std::int64_t& value, std::string_view help, const Limits& limits) {
  if (const std::string* text = find(name, help)) value = std::stoll(*text);
  refuse(violation(limits, static_cast<double>(value)));
}

void FieldSettings::field(std::string_view name, double& value, std::string_view help, const Limits& limits) {
  if (const std::string* text = find(name, help)) value = std::stod(*text);
  refuse(violation(limits, value));
}

void FieldSettings::field(std::string_view name, std::string& value, std::string_view help, const Limits& limits) {
  if (const std::string* text = find(name, help)) value = *text;
  refuse(violation(limits, value));
}

void FieldSettings::field(std::string_view name, std::vector<double>& value, std::string_view help, const Limits&) {
  const std::string* text = find(name, help);
  if (text == nullptr) return;
  value.clear();
  std::istringstream numbers(*text);
  for (std::string number; std::getline(numbers, number, ',');) value.push_back(std::stod(number));
}

void FieldSettings::field(std::string_view name, std::vector<std::string>& value, std::string_view help,
                          const Limits&) {
  if (const std::string* text = find(name, help)) value = {*text};
}

void FieldSettings::begin_section(std::string_view name, std::string_view) { prefix_ += std::string(name) + "."; }

void FieldSettings::end_section() {
  prefix_.pop_back();
  const auto dot = prefix_.rfind('.');
  prefix_.resize(dot == std::string::npos ? 0 : dot + 1);
}

std::vector<std::string> FieldSettings::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_)
    if (!used_.contains(name)) names.push_back(name);
  return names;
}

}  // namespace carnot::testing
