// text/json_problems.h -- collects what is wrong with a JSON file, each problem with the path of its key.
//
// Included by sources only: it brings nlohmann/json.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/json.h"
#include "carnot/core/base/result.h"

namespace carnot {

class JsonProblems {
 public:
  /// `name`: of the file; precedes each problem.
  explicit JsonProblems(std::string name) : name_(std::move(name)) {}

  void add(const std::string& path, const std::string& what);
  bool any() const { return count_ > 0; }
  /// The first problems, a line each, and how many more there are. REQUIRES: any().
  Error error() const;

  /// False, with a problem added, where `value` is not an object or has a key that is not among `known`.
  bool check_object(const Json& value, const std::string& path, std::initializer_list<std::string_view> known);

  /// The member `key`, `otherwise` where it is missing or null; adds a problem where it is of another type.
  bool flag(const Json& object, const char* key, bool otherwise, const std::string& path);
  std::string text(const Json& object, const char* key, const std::string& path);

 private:
  std::string name_;
  std::vector<std::string> first_;
  std::size_t count_ = 0;
};

/// The member `key` of `object`, or null if it has none.
const Json& member(const Json& object, const char* key);

}  // namespace carnot
