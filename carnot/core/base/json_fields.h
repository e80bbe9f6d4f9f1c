// base/json_fields.h -- reads the fields of a JSON object by type, and collects everything that is wrong with them.
//
// Include it in sources only: it includes nlohmann/json. A field that is absent or null keeps its value, unless a
// function says otherwise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/json.h"

namespace carnot {

class JsonFields {
 public:
  /// `where` precedes each problem. The object and the problems must outlive it.
  JsonFields(const Json& object, std::string where, std::vector<std::string>& problems)
      : object_(object), where_(std::move(where)), problems_(problems) {}

  /// The field, or null if it is absent or null.
  const Json* find(const char* name) const;

  void problem(const std::string& what) const { problems_.push_back(where_ + ": " + what); }
  /// The field `name` is not what was expected: "a number".
  void expected(const char* name, const std::string& what) const;
  void expected(const std::string& path, const std::string& what, const Json& found) const;

  /// Records a missing field and returns false.
  bool require(const char* name) const;

  void read(const char* name, bool& value) const;
  void read(const char* name, double& value) const;
  void read(const char* name, std::optional<double>& value) const;
  void read(const char* name, std::string& value) const;
  /// A string; an integer counts as its digits.
  void read_text(const char* name, std::string& value) const;

  template <class Integer>
  void read_whole(const char* name, Integer& value) const {
    const Json* json = find(name);
    if (json != nullptr && !whole(*json, value)) expected(name, "an integer in range");
  }
  /// A missing field is a problem, too.
  void read_whole(const char* name, std::int64_t& value, std::int64_t low, std::int64_t high) const;
  /// An integer, or a string of its digits.
  void read_digits(const char* name, std::uint64_t& value) const;

  /// The index of a word; `otherwise` where the field is absent.
  template <std::size_t kCount>
  int read_word(const char* name, const std::string_view (&words)[kCount], int otherwise) const {
    const Json* json = find(name);
    if (json == nullptr) return otherwise;
    const int index = json->is_string() ? index_of(json->get_ref<const std::string&>(), words) : -1;
    if (index >= 0) return index;
    std::string all;
    for (const std::string_view word : words) all += (all.empty() ? "one of " : " | ") + std::string(word);
    expected(name, all);
    return otherwise;
  }

  /// A list with one entry per token; null if the field is absent or not such a list.
  const Json* list(const char* name, std::size_t tokens) const;
  /// The fields of an object, which is missing or not one: none, and a problem. `what` is "a file's size", say.
  std::optional<JsonFields> object(const char* name, const std::string& what) const;

  template <std::size_t kCount>
  static int index_of(std::string_view word, const std::string_view (&words)[kCount]) {
    const auto found = std::find(std::begin(words), std::end(words), word);
    return found == std::end(words) ? -1 : static_cast<int>(found - std::begin(words));
  }

  template <class Integer>
  static bool whole(const Json& json, Integer& value) {
    if (!json.is_number_integer()) return false;
    if (json.is_number_unsigned()) {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<Integer>::max())) return false;
      value = static_cast<Integer>(number);
      return true;
    }
    const auto number = json.get<std::int64_t>();  // negative: JSON's non-negative integers are unsigned
    if (!std::numeric_limits<Integer>::is_signed ||
        number < static_cast<std::int64_t>(std::numeric_limits<Integer>::min()))
      return false;
    value = static_cast<Integer>(number);
    return true;
  }

 private:
  const Json& object_;
  std::string where_;
  std::vector<std::string>& problems_;
};

}  // namespace carnot
