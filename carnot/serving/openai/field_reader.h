// serving/openai/field_reader.h -- the fields of a request's JSON, each checked; all problems are listed, up to a
// limit.
//
// Included by sources only: it brings nlohmann/json.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/json.h"
#include "carnot/serving/openai/request.h"

namespace carnot {

inline constexpr std::size_t kLongestName = 128;  ///< bytes of a name that is taken or shown

class FieldReader {
 public:
  explicit FieldReader(bool chat) { request.chat = chat; }

  void refuse(const std::string& field, const std::string& expected, const OrderedJson& value) {
    if (!is_full()) add(field, "expected " + expected + ", found " + shown(Json(value)));
  }
  void add(const std::string& field, const std::string& message) {
    if (!is_full()) problems.push_back({field, message});
  }
  /// Whether as many problems are listed as will be: what follows in a list need not be read.
  bool is_full() const { return problems.size() >= kMaxProblems; }

  bool flag(const std::string& field, const OrderedJson& value) {
    if (!value.is_boolean()) refuse(field, "true or false", value);
    return value.is_boolean() && value.get<bool>();
  }
  std::optional<std::int64_t> integer(const std::string& field, const OrderedJson& value, std::int64_t low,
                                      std::int64_t high) {
    // 1.0 is an integer in JSON too.
    const bool whole = value.is_number_float() && std::floor(value.get<double>()) == value.get<double>() &&
                       std::abs(value.get<double>()) < 0x1p53;
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
      refuse(field, between(low, high), value);
      return std::nullopt;
    }
    if (value.is_number_integer() || whole) {
      const std::int64_t number = whole ? static_cast<std::int64_t>(value.get<double>()) : value.get<std::int64_t>();
      if (number >= low && number <= high) return number;
    }
    refuse(field, between(low, high), value);
    return std::nullopt;
  }
  std::optional<int> count(const std::string& field, const OrderedJson& value, int low, int high) {
    const auto number = integer(field, value, low, high);
    return number ? std::optional<int>(static_cast<int>(*number)) : std::nullopt;
  }
  std::optional<double> number(const std::string& field, const OrderedJson& value, double low, double high,
                               const std::string& expected) {
    if (value.is_number()) {
      const double given = value.get<double>();
      if (given >= low && given <= high) return given;
    }
    refuse(field, expected, value);
    return std::nullopt;
  }
  std::string text(const std::string& field, const OrderedJson& value) {
    if (value.is_string()) return value.get<std::string>();
    refuse(field, "a string", value);
    return {};
  }

  OpenAiRequest request{};
  std::vector<FieldProblem> problems{};
  std::optional<int> max_completion_tokens{};
  bool wants_log_probs = false;
  std::optional<int> top_log_probs{};
  std::string tool_choice = "auto";

 private:
  static std::string between(std::int64_t low, std::int64_t high) {
    return high == INT64_MAX ? "an integer of at least " + std::to_string(low)
                             : "an integer from " + std::to_string(low) + " to " + std::to_string(high);
  }
};

/// "messages[2]"
std::string list_item(const std::string& field, std::size_t index);

/// Up to 128 letters, digits and -_.:
bool is_openai_name(const std::string& text);

/// Null if the object has no such key.
const OrderedJson& json_member(const OrderedJson& object, const char* key);

/// "unknown field; did you mean ...?"
std::string unknown_field(const std::string& key, const std::vector<std::string>& known);

/// Lists keys that are not known, but for those that are null.
void refuse_others(FieldReader& to, const OrderedJson& object, const std::string& field,
                   const std::vector<std::string>& known);

/// The fields `messages` and `tools` of a chat.
void read_messages(FieldReader& to, const OrderedJson& value);
void read_tools(FieldReader& to, const OrderedJson& value);

}  // namespace carnot
