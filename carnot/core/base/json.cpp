#include "carnot/core/base/json.h"

#include <set>

namespace carnot {
namespace {

constexpr std::size_t kShownValue = 60;
constexpr std::size_t kShownReason = 160;

std::string cut(std::string_view text, std::size_t size = kShownReason) {
  return text.size() <= size ? std::string(text) : std::string(text.substr(0, size)) + "...";
}

/// Builds the value from the parser's events, and stops the parser at the first thing that is refused.
template <class AnyJson>
class LimitedBuilder final : public nlohmann::json_sax<AnyJson> {
 public:
  using Base = nlohmann::json_sax<AnyJson>;
  using typename Base::binary_t;
  using typename Base::number_float_t;
  using typename Base::number_integer_t;
  using typename Base::number_unsigned_t;
  using typename Base::string_t;

  explicit LimitedBuilder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // of binary formats

  bool start_object(std::size_t) override { return open(AnyJson::object()); }
  bool start_array(std::size_t) override { return open(AnyJson::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Open& object = open_.back();
    if (!object.keys.insert(name).second) return refuse("the key \"" + cut(name) + "\" appears twice in one object");
    // The key is known to be new: append it, without the search through all keys that an ordered object would make.
    auto& members = object.value->template get_ref<typename AnyJson::object_t&>();
    if constexpr (requires { members.emplace_back(std::move(name), nullptr); }) {
      object.member = &members.emplace_back(std::move(name), nullptr).second;
    } else {
      object.member = &members.emplace(std::move(name), nullptr).first->second;
    }
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string_view what = error.what();
    const std::size_t reason = what.find("] ");
    return refuse("not JSON at byte " + std::to_string(byte) + ": " +
                  cut(reason == std::string_view::npos ? what : what.substr(reason + 2)));
  }

  const std::string& problem() const { return problem_; }
  AnyJson take() { return std::move(root_); }

 private:
  struct Open {
    AnyJson* value = nullptr;
    AnyJson* member = nullptr;     ///< of an object: of the last key read
    std::set<std::string> keys{};  ///< of an object
  };

  bool refuse(std::string what) {
    problem_ = std::move(what);
    return false;
  }

  /// Where the value was put; null if there are too many values.
  AnyJson* place(AnyJson value) {
    if (++values_ > limits_.values) {
      refuse("has more than " + std::to_string(limits_.values) + " values");
      return nullptr;
    }
    AnyJson* at = &root_;
    if (!open_.empty() && open_.back().value->is_array()) {
      auto& list = open_.back().value->template get_ref<typename AnyJson::array_t&>();
      return &list.emplace_back(std::move(value));
    }
    if (!open_.empty()) at = open_.back().member;
    *at = std::move(value);
    return at;
  }

  bool put(AnyJson value) { return place(std::move(value)) != nullptr; }

  bool open(AnyJson value) {
    if (open_.size() == limits_.depth) return refuse("nests deeper than " + std::to_string(limits_.depth) + " levels");
    AnyJson* at = place(std::move(value));
    if (at != nullptr) open_.push_back({.value = at});
    return at != nullptr;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  AnyJson root_;
  std::vector<Open> open_;
  std::size_t values_ = 0;
  std::string problem_;
};

}  // namespace

template <class AnyJson>
Result<AnyJson> parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    return Error{where + ": has " + std::to_string(text.size()) + " bytes; JSON of at most " +
                 std::to_string(limits.bytes) + " is read"};
  LimitedBuilder<AnyJson> builder(limits);
  if (!AnyJson::sax_parse(text.begin(), text.end(), &builder)) return Error{where + ": " + builder.problem()};
  return builder.take();
}

template <class AnyJson>
Result<AnyJson> parse_json_object(std::string_view text, const std::string& where) {
  auto value = parse_json<AnyJson>(text, where);
  if (value && !value->is_object())
    return Error{where + ": expected a JSON object, found " + std::string(value->type_name())};
  return value;
}

std::string shown(const Json& value) {
  if (value.is_structured()) return "an " + std::string(value.type_name()) + " of size " + std::to_string(value.size());
  return cut(value.dump(-1, ' ', true, Json::error_handler_t::replace), kShownValue);
}

template Result<Json> parse_json(std::string_view, const std::string&, const JsonLimits&);
template Result<OrderedJson> parse_json(std::string_view, const std::string&, const JsonLimits&);
template Result<Json> parse_json_object(std::string_view, const std::string&);
template Result<OrderedJson> parse_json_object(std::string_view, const std::string&);

}  // namespace carnot
