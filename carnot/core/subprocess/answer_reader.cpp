#include "carnot/core/subprocess/answer_reader.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

bool is_text(const Json& json) { return json.is_string(); }

bool is_finite(const Json& json) { return json.is_number() && std::isfinite(json.get<double>()); }

bool all(const Json& list, bool (*fits)(const Json&)) { return std::all_of(list.begin(), list.end(), fits); }

}  // namespace

AnswerReader::AnswerReader(const PeerAnswer& answer)
    : object_(answer.value.get()), where_(answer.where), problems_(&own_problems_) {
  known_ = {"id", "error"};  // a null error means success: subprocess/peer.h
}

AnswerReader::AnswerReader(const Json& object, std::string path, std::vector<std::string>& problems)
    : object_(&object), path_(std::move(path)), problems_(&problems) {}

template <class Value, class Fits>
void AnswerReader::take(std::string_view key, Value& value, const char* expected, Fits fits) {
  const Json* found = member(key);
  if (found == nullptr) return;
  if (!fits(*found)) return problem(key, expected, *found);
  value = found->get<Value>();
}

const Json* AnswerReader::member(std::string_view key) {
  known_.emplace(key);
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

bool AnswerReader::has(std::string_view key) const {
  const auto found = object_->find(key);
  return found != object_->end() && !found->is_null();
}

void AnswerReader::problem(std::string_view key, const std::string& expected, const Json& found) {
  problems_->push_back(path_ + std::string(key) + ": expected " + expected + ", found " + shown(found));
}

void AnswerReader::refuse(std::string_view key, const std::string& expected) {
  const Json* found = member(key);
  problem(key, expected, found == nullptr ? Json() : *found);
}

void AnswerReader::text(std::string_view key, std::string& value) { take(key, value, "a string", is_text); }

void AnswerReader::texts(std::string_view key, std::vector<std::string>& value) {
  take(key, value, "a list of strings", [](const Json& json) { return json.is_array() && all(json, is_text); });
}

void AnswerReader::text_map(std::string_view key, std::map<std::string, std::string>& value) {
  take(key, value, "an object of strings", [](const Json& json) { return json.is_object() && all(json, is_text); });
}

void AnswerReader::number(std::string_view key, double& value) { take(key, value, "a finite number", is_finite); }

void AnswerReader::numbers(std::string_view key, std::map<std::string, double>& value) {
  take(key, value, "an object of finite numbers",
       [](const Json& json) { return json.is_object() && all(json, is_finite); });
}

void AnswerReader::flag(std::string_view key, bool& value) {
  take(key, value, "true or false", [](const Json& json) { return json.is_boolean(); });
}

void AnswerReader::count(std::string_view key, int& value, int least, int most) {
  const Json* found = member(key);
  if (found == nullptr) return;
  const bool whole = found->is_number_integer();
  // A number above 2^63 is unsigned: it fits no int either way.
  const auto number = whole && !(found->is_number_unsigned() && found->get<std::uint64_t>() > std::uint64_t{1} << 40)
                          ? found->get<std::int64_t>()
                          : std::int64_t{-1};
  if (!whole || number < least || number > most)
    return problem(key, "an integer from " + std::to_string(least) + " to " + std::to_string(most), *found);
  value = static_cast<int>(number);
}

void AnswerReader::word(std::string_view key, std::size_t& value, const std::vector<std::string_view>& words) {
  std::string text;
  const Json* found = member(key);
  if (found == nullptr) return;
  const auto place =
      found->is_string() ? std::find(words.begin(), words.end(), found->get<std::string>()) : words.end();
  if (place == words.end())
    return problem(key, "one of " + join(std::vector<std::string>(words.begin(), words.end())), *found);
  value = static_cast<std::size_t>(place - words.begin());
}

std::string AnswerReader::json(std::string_view key) {
  const Json* found = member(key);
  return found == nullptr ? "" : found->dump();
}

bool AnswerReader::is_object(std::string_view key, const Json& value) {
  if (!value.is_object()) problem(key, "an object", value);
  return value.is_object();
}

std::size_t AnswerReader::list_size(std::string_view key) {
  const Json* found = member(key);
  if (found == nullptr) return 0;
  if (found->is_array()) return found->size();
  if (known_.insert(std::string(key) + "[]").second) problem(key, "a list", *found);
  return 0;
}

const Json& AnswerReader::list_item(std::string_view key, std::size_t index) const {
  return object_->find(key)->at(index);
}

std::string AnswerReader::item_name(std::string_view key, std::size_t index) {
  return std::string(key) + "[" + std::to_string(index) + "]";
}

void AnswerReader::refuse_unknown() {
  for (const auto& [key, value] : object_->items())
    if (!known_.contains(key)) problems_->push_back(path_ + key + ": no field of this answer");
}

void AnswerReader::finish() {
  refuse_unknown();
  if (problems_->empty()) return;
  std::string all = where_;
  for (const std::string& one : *problems_) all += (&one == &problems_->front() ? ": " : "; ") + one;
  throw PeerFailure(all);
}

}  // namespace carnot
