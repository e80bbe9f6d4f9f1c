#include "carnot/core/text/spaced_json.h"

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"

namespace carnot {
namespace {

OrderedJson parsed(std::string_view text) {
  return parse_json<OrderedJson>(text, "what a chat format is given").value();
}

void write(const OrderedJson& value, std::string& out) {
  if (!value.is_structured()) {
    out += json_line(value);
    return;
  }
  out += value.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    if (!first) out += ", ";
    first = false;
    if (value.is_object()) out += quoted_json(key) + ": ";
    write(member, out);
  }
  out += value.is_object() ? '}' : ']';
}

std::string spaced(const OrderedJson& value) {
  std::string out;
  write(value, out);
  return out;
}

}  // namespace

std::string spaced_json(std::string_view json) { return spaced(parsed(json)); }

std::string quoted_json(std::string_view text) { return json_line(OrderedJson(std::string(text))); }

std::string json_member(std::string_view json, std::string_view key) {
  const OrderedJson object = parsed(json);
  CARNOT_CHECK(object.is_object(), "not an object: " + std::string(json));
  const auto found = object.find(std::string(key));
  return found == object.end() ? std::string() : spaced(*found);
}

}  // namespace carnot
