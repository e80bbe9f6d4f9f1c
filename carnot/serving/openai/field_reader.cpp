#include "carnot/serving/openai/field_reader.h"

#include <algorithm>
#include <cctype>

#include "carnot/core/base/nearest_word.h"

namespace carnot {
namespace {

/// A string, or a list of parts with strings.
std::string read_content(FieldReader& to, const std::string& field, const OrderedJson& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    to.refuse(field, "a string or a list of text parts", content);
    return {};
  }
  std::string text;
  for (std::size_t i = 0; i < content.size() && !to.is_full(); ++i) {
    const OrderedJson& part = content[i];
    const bool is_text =
        part.is_object() && json_member(part, "type") == "text" && json_member(part, "text").is_string();
    if (!is_text) {
      to.refuse(list_item(field, i), R"(a part {"type": "text", "text": ...}; images and sound are not read)", part);
      continue;
    }
    refuse_others(to, part, list_item(field, i), {"type", "text"});
    text += part["text"].get<std::string>();
  }
  return text;
}

std::string read_name(FieldReader& to, const std::string& field, const OrderedJson& value,
                      const std::string& expected = "up to 128 letters, digits and -_.:") {
  if (value.is_string() && is_openai_name(value.get<std::string>())) return value.get<std::string>();
  to.refuse(field, expected, value);
  return {};
}

ToolCall read_tool_call(FieldReader& to, const std::string& field, const OrderedJson& given) {
  ToolCall call;
  if (!given.is_object()) {
    to.refuse(field, "an object", given);
    return call;
  }
  refuse_others(to, given, field, {"id", "type", "function", "index"});
  if (const OrderedJson& type = json_member(given, "type"); !type.is_null() && type != "function")
    to.refuse(field + ".type", "\"function\"", type);
  call.id = read_name(to, field + ".id", json_member(given, "id"));
  const OrderedJson& function = json_member(given, "function");
  if (!function.is_object()) {
    to.refuse(field + ".function", "an object with name and arguments", function);
    return call;
  }
  refuse_others(to, function, field + ".function", {"name", "arguments"});
  call.name = read_name(to, field + ".function.name", json_member(function, "name"));
  const OrderedJson& arguments = json_member(function, "arguments");
  const auto object = arguments.is_string()
                          ? parse_json_object<OrderedJson>(arguments.get_ref<const std::string&>(), "JSON")
                          : Result<OrderedJson>(Error{""});
  if (object)
    call.arguments = arguments.get<std::string>();
  else
    to.refuse(field + ".function.arguments", "the text of a JSON object", arguments);
  return call;
}

Message read_message(FieldReader& to, const std::string& field, const OrderedJson& given) {
  Message message;
  if (!given.is_object()) {
    to.refuse(field, "an object with role and content", given);
    return message;
  }
  const OrderedJson& role = json_member(given, "role");
  message.role = role == "developer" ? "system" : role.is_string() ? role.get<std::string>() : "";
  const std::vector<std::string> roles{"system", "user", "assistant", "tool"};
  if (std::find(roles.begin(), roles.end(), message.role) == roles.end()) {
    to.refuse(field + ".role", "system, developer, user, assistant or tool", role);
    return message;
  }
  // What an answer of ours has and a client sends back as it is: nulls and empty lists.
  std::vector<std::string> known{"role", "content", "name"};
  if (message.role == "assistant") known.insert(known.end(), {"tool_calls"});
  if (message.role == "tool") known.emplace_back("tool_call_id");
  for (const auto& [key, value] : given.items()) {
    const bool empty = value.is_null() || (value.is_array() && value.empty());
    if (!empty && std::find(known.begin(), known.end(), key) == known.end())
      to.add(field + "." + key.substr(0, kLongestName), unknown_field(key, known));
  }
  if (const OrderedJson& calls = json_member(given, "tool_calls"); !calls.is_null() && message.role == "assistant") {
    if (!calls.is_array()) to.refuse(field + ".tool_calls", "a list", calls);
    for (std::size_t i = 0; calls.is_array() && i < calls.size() && !to.is_full(); ++i)
      message.tool_calls.push_back(read_tool_call(to, list_item(field + ".tool_calls", i), calls[i]));
  }
  if (message.role == "tool")
    message.tool_call_id =
        read_name(to, field + ".tool_call_id", json_member(given, "tool_call_id"), "the id of a call");
  const OrderedJson& content = json_member(given, "content");
  if (!content.is_null() || message.tool_calls.empty()) message.content = read_content(to, field + ".content", content);
  return message;
}

}  // namespace

std::string list_item(const std::string& field, std::size_t index) { return field + "[" + std::to_string(index) + "]"; }

bool is_openai_name(const std::string& text) {
  return !text.empty() && text.size() <= kLongestName && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-.:").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

const OrderedJson& json_member(const OrderedJson& object, const char* key) {
  static const OrderedJson kNull;
  const auto place = object.find(key);
  return place == object.end() ? kNull : *place;
}

std::string unknown_field(const std::string& key, const std::vector<std::string>& known) {
  return unknown_word("field", std::string_view(key).substr(0, kLongestName), known);
}

void refuse_others(FieldReader& to, const OrderedJson& object, const std::string& field,
                   const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items())
    if (!value.is_null() && std::find(known.begin(), known.end(), key) == known.end())
      to.add(field + "." + key.substr(0, kLongestName), unknown_field(key, known));
}

void read_messages(FieldReader& to, const OrderedJson& value) {
  if (!value.is_array() || value.empty()) return to.refuse("messages", "a list of at least one message", value);
  std::vector<Message>& messages = to.request.messages;
  for (std::size_t i = 0; i < value.size() && !to.is_full(); ++i)
    messages.push_back(read_message(to, list_item("messages", i), value[i]));
  if (!to.is_full() && messages.back().role == "assistant")
    to.add("messages", "the last one is the assistant's; expected another's");
}

void read_tools(FieldReader& to, const OrderedJson& value) {
  if (!value.is_array()) return to.refuse("tools", "a list", value);
  for (std::size_t i = 0; i < value.size() && !to.is_full(); ++i) {
    const std::string field = list_item("tools", i);
    const OrderedJson& tool = value[i];
    const bool is_function =
        tool.is_object() && json_member(tool, "type") == "function" && json_member(tool, "function").is_object();
    if (!is_function) {
      to.refuse(field, R"({"type": "function", "function": {...}})", tool);
      continue;
    }
    const OrderedJson& function = json_member(tool, "function");
    refuse_others(to, tool, field, {"type", "function"});
    refuse_others(to, function, field + ".function", {"name", "description", "parameters", "strict"});
    if (const OrderedJson& strict = json_member(function, "strict"); !strict.is_null())
      to.flag(field + ".function.strict", strict);
    read_name(to, field + ".function.name", json_member(function, "name"));
    const OrderedJson& description = json_member(function, "description");
    if (!description.is_string() && !description.is_null())
      to.refuse(field + ".function.description", "a string", description);
    const OrderedJson& parameters = json_member(function, "parameters");
    if (!parameters.is_object() && !parameters.is_null())
      to.refuse(field + ".function.parameters", "a JSON schema", parameters);
    OrderedJson kept = tool;
    for (const char* key : {"strict", "description", "parameters"})  // what says nothing is not rendered
      if (kept["function"].contains(key) && (kept["function"][key].is_null() || std::string_view(key) == "strict"))
        kept["function"].erase(key);
    to.request.tools.push_back(kept.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  }
}

}  // namespace carnot
