#include "carnot/text/json_problems.h"

#include <algorithm>

namespace carnot {
namespace {

constexpr std::size_t kShownProblems = 20;
constexpr std::size_t kShownBytes = 60;
constexpr int kDeepest = 64;

/// Brackets that are open at once, at most.
int depth_of(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& name) {
  // Copying and writing a value recurse.
  if (depth_of(text) > kDeepest) return Error{name + ": nests deeper than " + std::to_string(kDeepest) + " levels"};
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    return Error{name + ": not JSON: " + error.what()};
  }
}

std::string shown(const Json& value) {
  if (value.is_structured()) return "an " + std::string(value.type_name()) + " of size " + std::to_string(value.size());
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return text;
}

void JsonProblems::add(const std::string& path, const std::string& what) {
  if (++count_ <= kShownProblems) first_.push_back(name_ + ": " + (path.empty() ? "" : path + ": ") + what);
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
