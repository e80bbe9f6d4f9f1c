#include "testing/field_setter.h"

#include <nlohmann/json.hpp>

namespace carnot::testing {

using nlohmann::json;

void FieldSetter::field(std::string_view name, bool& value, std::string_view) {
  const json given = json::parse(json_);
  if (name != name_ || !given.is_boolean()) return;
  value = given.get<bool>();
  found_ = true;
}

void FieldSetter::field(std::string_view name, std::int64_t& value, std::string_view, const Limits& limits) {
  const json given = json::parse(json_);
  if (name != name_ || !given.is_number_integer()) return;
  if (!violation(limits, given.get<double>()).empty()) return;
  value = given.get<std::int64_t>();
  found_ = true;
}

void FieldSetter::field(std::string_view name, double& value, std::string_view, const Limits& limits) {
  const json given = json::parse(json_);
  if (name != name_ || !given.is_number() || !violation(limits, given.get<double>()).empty()) return;
  value = given.get<double>();
  found_ = true;
}

void FieldSetter::field(std::string_view name, std::string& value, std::string_view, const Limits& limits) {
  const json given = json::parse(json_);
  if (name != name_ || !given.is_string() || !violation(limits, given.get<std::string>()).empty()) return;
  value = given.get<std::string>();
  found_ = true;
}

}  // namespace carnot::testing
