#include "carnot/core/text/tool_calls.h"

#include "carnot/core/base/json.h"
#include "carnot/core/text/spaced_json.h"

namespace carnot {
namespace {

Error refused(const std::string& why) { return Error{"this tool call cannot be read: " + why}; }

Result<std::string> arguments_of(const OrderedJson& value) {
  if (value.is_object()) return spaced_json(value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  if (!value.is_string()) return refused("its arguments are no JSON object");
  const auto inner = parse_json_object<OrderedJson>(value.get<std::string>(), "the arguments");
  if (!inner) return refused(inner.error().message);
  return spaced_json(value.get<std::string>());
}

Result<ToolCall> call_of(const OrderedJson& value, std::string_view arguments_key) {
  if (!value.is_object()) return refused("it is no JSON object");
  const auto name = value.find("name");
  if (name == value.end() || !name->is_string() || name->get<std::string>().empty())
    return refused("it has no \"name\"");
  ToolCall call{.name = name->get<std::string>()};
  if (const auto given = value.find(std::string(arguments_key)); given != value.end()) {
    CARNOT_ASSIGN_OR_RETURN(call.arguments, arguments_of(*given));
  }
  return call;
}

}  // namespace

Result<ToolCall> parse_tool_call(std::string_view json, std::string_view arguments_key) {
  const auto value = parse_json<OrderedJson>(json, "the call");
  if (!value) return refused(value.error().message);
  return call_of(*value, arguments_key);
}

Result<std::vector<ToolCall>> parse_tool_call_list(std::string_view json, std::string_view arguments_key) {
  const auto value = parse_json<OrderedJson>(json, "the list of calls");
  if (!value) return refused(value.error().message);
  if (!value->is_array() || value->empty()) return refused("it is no list of calls");
  std::vector<ToolCall> calls;
  for (const OrderedJson& one : *value) {
    CARNOT_ASSIGN_OR_RETURN(auto call, call_of(one, arguments_key));
    if (const auto id = one.find("id"); id != one.end() && id->is_string()) call.id = id->get<std::string>();
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace carnot
