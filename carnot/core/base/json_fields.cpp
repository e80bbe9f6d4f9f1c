#include "carnot/core/base/json_fields.h"

#include <charconv>

namespace carnot {

const Json* JsonFields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::expected(const char* name, const std::string& what) const {
  const Json* found = find(name);
  if (found != nullptr) return expected(name, what, *found);
  problem(std::string(name) + ": expected " + what + ", found nothing");
}

void JsonFields::expected(const std::string& path, const std::string& what, const Json& found) const {
  problem(path + ": expected " + what + ", found " + shown(found));
}

bool JsonFields::require(const char* name) const {
  if (find(name) != nullptr) return true;
  problem("misses the field " + std::string(name));
  return false;
}

void JsonFields::read(const char* name, bool& value) const {
  const Json* json = find(name);
  if (json == nullptr) return;
  if (!json->is_boolean()) return expected(name, "true or false");
  value = json->get<bool>();
}

void JsonFields::read(const char* name, double& value) const {
  const Json* json = find(name);
  if (json == nullptr) return;
  if (!json->is_number()) return expected(name, "a number");
  value = json->get<double>();
}

void JsonFields::read(const char* name, std::optional<double>& value) const {
  if (find(name) == nullptr) return;
  double number = 0;
  read(name, number);
  value = number;
}

void JsonFields::read(const char* name, std::string& value) const {
  const Json* json = find(name);
  if (json == nullptr) return;
  if (!json->is_string()) return expected(name, "a string");
  value = json->get<std::string>();
}

void JsonFields::read_text(const char* name, std::string& value) const {
  const Json* json = find(name);
  if (json != nullptr && json->is_number_integer())
    value = json->dump();
  else
    read(name, value);
}

void JsonFields::read_whole(const char* name, std::int64_t& value, std::int64_t low, std::int64_t high) const {
  const Json* json = find(name);
  std::int64_t number = 0;
  if (json == nullptr || !whole(*json, number) || number < low || number > high)
    return expected(name, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
  value = number;
}

void JsonFields::read_digits(const char* name, std::uint64_t& value) const {
  const Json* json = find(name);
  if (json == nullptr || !json->is_string()) return read_whole(name, value);
  const auto& text = json->get_ref<const std::string&>();
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) expected(name, "an integer in range");
}

const Json* JsonFields::list(const char* name, std::size_t tokens) const {
  const Json* json = find(name);
  if (json == nullptr) return nullptr;
  if (!json->is_array()) {
    expected(name, "a list");
    return nullptr;
  }
  if (json->size() == tokens) return json;
  problem(std::string(name) + ": has " + std::to_string(json->size()) + " entries for " + std::to_string(tokens) +
          " tokens");
  return nullptr;
}

std::optional<JsonFields> JsonFields::object(const char* name, const std::string& what) const {
  const Json* json = find(name);
  if (json != nullptr && json->is_object()) return JsonFields(*json, where_ + ": " + name, problems_);
  expected(name, what);
  return std::nullopt;
}

}  // namespace carnot
