// text/plain_tool_calls.cpp -- the forms of text/tool_call_form.h whose arguments are no JSON object: Python's calls,
// and parameters within tags.
#include <algorithm>
#include <optional>

#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/pythonic_calls.h"
#include "carnot/core/text/refused_call.h"
#include "carnot/core/text/spaced_json.h"
#include "carnot/core/text/tool_call_form.h"

namespace carnot {
namespace {

/// How Python's calls differ.
struct PythonicStyle {
  std::string_view marks[2]{};
  std::string_view between{};
  bool in_brackets = false;
  PythonicValues values = PythonicValues::Json;
};

class PythonicForm final : public ToolCallForm {
 public:
  explicit PythonicForm(const PythonicStyle& style) : style_(style) {}

  std::vector<CallText> written(std::string_view content, std::span<const ToolCall> calls) const override {
    std::string list;
    for (const ToolCall& call : calls)
      list += (list.empty() ? "" : std::string(style_.between)) + pythonic_call(call, style_.values);
    if (style_.in_brackets) list = "[" + list + "]";
    return {{.text = std::string(content)},
            {.text = std::string(style_.marks[0]), .of_format = true},
            {.text = list},
            {.text = std::string(style_.marks[1]), .of_format = true}};
  }

  Result<std::vector<ToolCall>> parse(std::string_view text, Tools) const override {
    const auto [open, close] = style_.marks;
    std::vector<ToolCall> calls;
    for (auto begin = text.find(open); begin != std::string_view::npos; begin = text.find(open)) {
      text.remove_prefix(begin + open.size());
      CARNOT_ASSIGN_OR_RETURN(auto read, read_pythonic_calls(trim(text), style_.in_brackets));
      text = trim(trim(text).substr(read.end));
      if (!text.starts_with(close)) return refused_call(std::string(close) + " does not follow the last call");
      std::ranges::move(read.calls, std::back_inserter(calls));
    }
    return calls;
  }

  std::string_view beside(std::string_view text) const override { return text.substr(0, text.find(style_.marks[0])); }
  std::span<const std::string_view> marks() const override { return style_.marks; }

 private:
  PythonicStyle style_;
};

/// The types of JSON's that a schema allows a value to have.
std::vector<std::string> types_of(const OrderedJson& schema) {
  std::vector<std::string> types;
  if (!schema.is_object()) return types;
  const auto add = [&](const OrderedJson& type) {
    if (type.is_string()) types.push_back(type.get<std::string>());
  };
  for (const char* key : {"anyOf", "oneOf"})
    if (const auto branches = schema.find(key); branches != schema.end())
      for (const OrderedJson& branch : *branches) std::ranges::move(types_of(branch), std::back_inserter(types));
  const auto type = schema.find("type");
  if (type == schema.end()) return types;
  if (!type->is_array()) add(*type);
  if (type->is_array()) std::ranges::for_each(*type, add);
  return types;
}

bool has_type(const OrderedJson& value, const std::string& type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

/// What is known of a function's parameters.
class Schema {
 public:
  Schema(Tools tools, std::string_view function) {
    for (const std::string& tool : tools) {
      const auto read = parse_json<OrderedJson>(tool, "a tool");
      if (!read || !read->is_object()) continue;
      const OrderedJson described = read->value("function", OrderedJson());
      if (!described.is_object() || described.value("name", OrderedJson()) != std::string(function)) continue;
      const OrderedJson parameters = described.value("parameters", OrderedJson());
      if (parameters.is_object()) properties_ = parameters.value("properties", OrderedJson());
    }
  }

  /// A text as the value that it stands for. One whose type is not said is JSON if it can be.
  Result<OrderedJson> value_of(const std::string& key, std::string_view text) const {
    const auto types = types_of(properties_.is_object() ? properties_.value(key, OrderedJson()) : OrderedJson());
    const bool may_be_text = types.empty() || std::ranges::find(types, "string") != types.end();
    if (const auto value = plain_value(text))
      if (types.empty() || std::ranges::any_of(types, [&](const auto& type) { return has_type(*value, type); }))
        return *value;
    if (may_be_text) return OrderedJson(std::string(text));
    return refused_call("parameter '" + key + "' is '" + std::string(text.substr(0, 40)) + "'; expected " +
                        join(types, " or ") + ", as the function's description says");
  }

 private:
  /// No string: what is in quotes is a text with quotes.
  static std::optional<OrderedJson> plain_value(std::string_view text) {
    const std::string_view said = trim(text);
    if (said == "True" || said == "False") return OrderedJson(said == "True");
    if (said == "None") return OrderedJson();
    auto read = parse_json<OrderedJson>(said, "a value");
    if (!read || read->is_string()) return std::nullopt;
    return std::move(read).value();
  }

  OrderedJson properties_{};
};

class ParameterForm final : public ToolCallForm {
 public:
  explicit ParameterForm(bool json) : json_(json) {}

  std::vector<CallText> written(std::string_view content, std::span<const ToolCall> calls) const override {
    std::vector<CallText> all{{.text = std::string(content) + (content.empty() ? "" : "\n")}};
    for (const ToolCall& call : calls) {
      if (all.size() > 1 || !content.empty()) all.push_back({.text = "\n"});
      all.push_back({.text = std::string(kMarks[0]), .of_format = true});
      all.push_back({.text = "\n<function=" + call.name + ">\n" + parameters_text(call) + "</function>\n"});
      all.push_back({.text = std::string(kMarks[1]), .of_format = true});
    }
    return all;
  }

  Result<std::vector<ToolCall>> parse(std::string_view said, Tools tools) const override {
    const std::string valid = with_replacement_characters(said);
    std::string_view text = valid;
    std::vector<ToolCall> calls;
    for (auto begin = text.find(kMarks[0]); begin != std::string_view::npos; begin = text.find(kMarks[0])) {
      text.remove_prefix(begin + kMarks[0].size());
      CARNOT_ASSIGN_OR_RETURN(auto call, one_call(text, tools));
      calls.push_back(std::move(call));
    }
    return calls;
  }

  std::string_view beside(std::string_view text) const override {
    text = text.substr(0, text.find(kMarks[0]));
    for (int line_ends = 0; line_ends < 2 && text.ends_with('\n'); ++line_ends) text.remove_suffix(1);
    return text;
  }

  std::span<const std::string_view> marks() const override { return kMarks; }

 private:
  std::string parameters_text(const ToolCall& call) const {
    const auto arguments = parse_json_object<OrderedJson>(call.arguments, "the arguments of a call").value();
    std::string text;
    for (const auto& [key, value] : arguments.items())
      text += "<parameter=" + key + ">\n" + value_text(value) + "\n</parameter>\n";
    return text;
  }

  std::string value_text(const OrderedJson& value) const {
    if (value.is_string()) return value.get<std::string>();
    if (!json_ && value.is_boolean()) return value.get<bool>() ? "True" : "False";
    if (!json_ && value.is_null()) return "None";
    return spaced_json(json_line(value));
  }

  /// Reads one, up to its closing tag, which `text` then begins behind.
  static Result<ToolCall> one_call(std::string_view& text, Tools tools) {
    if (!take(text, kFunction)) return refused_call("<function=name> does not follow <tool_call>");
    const auto name = up_to(text, ">");
    if (!name || !is_name(*name)) return refused_call("<function= does not have a name and >");
    const Schema schema(tools, *name);
    OrderedJson arguments = OrderedJson::object();
    while (take(text, "<parameter=")) {
      const auto key = up_to(text, ">");
      if (!key || !is_name(*key)) return refused_call("<parameter= does not have a name and >");
      auto said = up_to(text, "</parameter>");
      if (!said) return refused_call("</parameter> of '" + std::string(*key) + "' is missing");
      CARNOT_ASSIGN_OR_RETURN(auto value, schema.value_of(std::string(*key), without_line_ends(*said)));
      if (!arguments.emplace(std::string(*key), std::move(value)).second)
        return refused_call("parameter '" + std::string(*key) + "' is given twice");
    }
    if (!take(text, "</function>")) return refused_call("</function> does not follow the last parameter");
    if (!take(text, kMarks[1])) return refused_call("</tool_call> does not follow </function>");
    return ToolCall{.name = std::string(*name), .arguments = spaced_json(json_line(arguments))};
  }

  static bool take(std::string_view& text, std::string_view tag) {
    const std::string_view said = trim(text);
    if (!said.starts_with(tag)) return false;
    text = said.substr(tag.size());
    return true;
  }

  /// What precedes `end`, which is taken, too.
  static std::optional<std::string_view> up_to(std::string_view& text, std::string_view end) {
    const auto at = text.find(end);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view before = text.substr(0, at);
    text.remove_prefix(at + end.size());
    return before;
  }

  static bool is_name(std::string_view text) {
    return !text.empty() && text.find_first_of("<\n") == std::string_view::npos;
  }

  static std::string_view without_line_ends(std::string_view text) {
    if (text.starts_with('\n')) text.remove_prefix(1);
    if (text.ends_with('\n')) text.remove_suffix(1);
    return text;
  }

  static constexpr std::string_view kFunction = "<function=";
  static constexpr std::string_view kMarks[] = {"<tool_call>", "</tool_call>", kFunction};
  bool json_;
};

}  // namespace

const ToolCallForm& parameter_tool_calls() {
  static const ParameterForm form(false);
  return form;
}

const ToolCallForm& json_parameter_tool_calls() {
  static const ParameterForm form(true);
  return form;
}

const ToolCallForm& olmo_tool_calls() {
  static const PythonicForm form({.marks = {"<function_calls>", "</function_calls>"}, .between = "\n"});
  return form;
}

const ToolCallForm& lfm_tool_calls() {
  static const PythonicForm form({.marks = {"<|tool_call_start|>", "<|tool_call_end|>"},
                                  .between = ", ",
                                  .in_brackets = true,
                                  .values = PythonicValues::Python});
  return form;
}

}  // namespace carnot
