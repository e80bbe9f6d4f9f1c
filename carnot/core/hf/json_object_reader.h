// hf/json_object_reader.h -- takes values out of a model folder's JSON objects and remembers everything that is wrong.
//
// Included by sources only: it brings nlohmann/json.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/json.h"

namespace carnot {

class JsonObjectReader {
 public:
  /// `where` precedes each problem: the file's name, or the file's and the object's.
  JsonObjectReader(const OrderedJson& json, std::string where) : json_(json), where_(std::move(where)) {}

  void problem(const std::string& key, const std::string& expected) {
    const OrderedJson* value = find(key);
    const std::string found =
        value ? " is " + value->dump(-1, ' ', false, OrderedJson::error_handler_t::replace) : " is missing";
    problems_.push_back(where_ + ": " + key + found + ", expected " + expected);
  }
  std::vector<std::string>& problems() { return problems_; }
  const std::string& where() const { return where_; }

  /// Null if the key is absent or null.
  const OrderedJson* find(const std::string& key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  bool has(const std::string& key) const { return json_.contains(key); }

  void integer(const std::string& key, int& value, bool required) {
    const OrderedJson* found = find(key);
    if (!found && !required) return;
    if (!found || !is_count(*found)) return problem(key, "an integer of at least 0");
    value = found->get<int>();
  }
  void number(const std::string& key, double& value, bool required = false) {
    const OrderedJson* found = find(key);
    if (!found && !required) return;
    if (!found || !found->is_number()) return problem(key, "a number");
    value = found->get<double>();
  }
  void boolean(const std::string& key, bool& value) {
    const OrderedJson* found = find(key);
    if (!found) return;
    if (!found->is_boolean()) return problem(key, "true or false");
    value = found->get<bool>();
  }
  void number(const std::string& key, std::optional<double>& value) {
    if (find(key)) number(key, value.emplace());
  }
  void integer(const std::string& key, std::optional<int>& value) {
    if (find(key)) integer(key, value.emplace(), true);
  }
  void boolean(const std::string& key, std::optional<bool>& value) {
    if (find(key)) boolean(key, value.emplace());
  }
  /// A token id; where the key is absent `value` stays, null means none (-1).
  void token(const std::string& key, int& value) {
    if (!has(key)) return;
    value = -1;
    const OrderedJson* found = find(key);
    if (!found) return;
    if (!is_token(*found)) return problem(key, "a token id");
    value = found->get<int>();
  }
  /// A token id or a list of them; where the key is absent `values` stay.
  void tokens(const std::string& key, std::vector<int>& values) {
    if (!has(key)) return;
    values.clear();
    const OrderedJson* found = find(key);
    if (!found) return;
    const OrderedJson list = found->is_array() ? *found : OrderedJson::array({*found});
    for (const OrderedJson& token : list) {
      if (!is_token(token)) return problem(key, "a token id or a list of them");
      if (token != -1) values.push_back(token.get<int>());
    }
  }
  /// Refuses every value but the one that we compute.
  void only(const std::string& key, const OrderedJson& accepted) {
    const OrderedJson* found = find(key);
    if (found && *found != accepted) problem(key, accepted.dump() + ", the only value that is computed");
  }
  void refuse(const std::string& key, const std::string& why) {
    if (find(key)) problem(key, "none: " + why);
  }

 private:
  static bool is_count(const OrderedJson& value) {
    return value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
           value.get<std::int64_t>() <= std::numeric_limits<int>::max();
  }
  /// Some files say -1 if there is none.
  static bool is_token(const OrderedJson& value) { return is_count(value) || value == -1; }

  const OrderedJson& json_;
  std::string where_;
  std::vector<std::string> problems_;
};

}  // namespace carnot
