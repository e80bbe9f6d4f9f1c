#include "carnot/core/text/json_problems.h"

#include <algorithm>

#include "carnot/core/base/limits.h"

namespace carnot {
void JsonProblems::add(const std::string& path, const std::string& what) {
  if (++count_ <= kMaxProblems) first_.push_back(name_ + ": " + (path.empty() ? "" : path + ": ") + what);
}

Error JsonProblems::error() const {
  auto lines = first_;
  if (count_ > lines.size()) lines.push_back(name_ + ": and " + std::to_string(count_ - lines.size()) + " more");
  return join_errors(lines);
}

bool JsonProblems::check_object(const Json& value, const std::string& path,
                                std::initializer_list<std::string_view> known) {
  if (!value.is_object()) {
    add(path, "expected an object, got " + shown(value));
    return false;
  }
  bool good = true;
  for (const auto& item : value.items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    add((path.empty() ? "" : path + ".") + item.key(), "not known here");
    good = false;
  }
  return good;
}

bool JsonProblems::flag(const Json& object, const char* key, bool otherwise, const std::string& path) {
  const Json& value = member(object, key);
  if (value.is_null()) return otherwise;
  if (value.is_boolean()) return value.get<bool>();
  add(path + "." + key, "expected true or false, got " + shown(value));
  return otherwise;
}

std::string JsonProblems::text(const Json& object, const char* key, const std::string& path) {
  const Json& value = member(object, key);
  if (value.is_string()) return value.get<std::string>();
  add(path + "." + key, "expected a string, got " + shown(value));
  return {};
}

const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

}  // namespace carnot
