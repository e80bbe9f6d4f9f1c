// text/json_tool_calls.cpp -- the forms of text/tool_call_form.h in which a call's arguments are a JSON object.
#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/text/refused_call.h"
#include "carnot/core/text/spaced_json.h"
#include "carnot/core/text/tool_call_form.h"

namespace carnot {
namespace {

/// One line of JSON of an argument object, or of a string with one.
Result<std::string> arguments_of(const OrderedJson& value) {
  if (value.is_object()) return spaced_json(json_line(value));
  if (!value.is_string()) return refused_call("its arguments are no JSON object");
  const auto inner = parse_json_object<OrderedJson>(value.get<std::string>(), "the arguments");
  if (!inner) return refused_call(inner.error().message);
  return spaced_json(value.get<std::string>());
}

Result<ToolCall> call_of(const OrderedJson& value, std::string_view arguments_key) {
  if (!value.is_object()) return refused_call("it is no JSON object");
  const auto name = value.find("name");
  if (name == value.end() || !name->is_string() || name->get<std::string>().empty())
    return refused_call("it has no \"name\"");
  ToolCall call{.name = name->get<std::string>()};
  if (const auto given = value.find(std::string(arguments_key)); given != value.end()) {
    CARNOT_ASSIGN_OR_RETURN(call.arguments, arguments_of(*given));
  }
  return call;
}

/// A call `{"name": ..., KEY: {...}}`; KEY holds the arguments ("arguments", "parameters"), an object or a string with
/// one; without KEY the call has none. Arguments come back as one line of JSON, keys in their order.
Result<ToolCall> parse_tool_call(std::string_view json, std::string_view arguments_key) {
  const auto value = parse_json<OrderedJson>(json, "the call");
  if (!value) return refused_call(value.error().message);
  return call_of(*value, arguments_key);
}

/// A list of such calls, not empty. An "id" is kept if `ids`: the format writes them.
Result<std::vector<ToolCall>> parse_tool_call_list(std::string_view json, bool ids) {
  const auto value = parse_json<OrderedJson>(json, "the list of calls");
  if (!value) return refused_call(value.error().message);
  if (!value->is_array() || value->empty()) return refused_call("it is no list of calls");
  std::vector<ToolCall> calls;
  for (const OrderedJson& one : *value) {
    CARNOT_ASSIGN_OR_RETURN(auto call, call_of(one, "arguments"));
    if (const auto id = one.find("id"); ids && id != one.end() && id->is_string()) call.id = id->get<std::string>();
    calls.push_back(std::move(call));
  }
  return calls;
}

std::string call_json(const ToolCall& call, std::string_view arguments_key) {
  return "{\"name\": " + quoted_json(call.name) + ", \"" + std::string(arguments_key) +
         "\": " + spaced_json(call.arguments);
}

class TaggedForm final : public ToolCallForm {
 public:
  std::vector<CallText> written(std::string_view content, std::span<const ToolCall> calls) const override {
    std::vector<CallText> all{{.text = std::string(content)}};
    for (const ToolCall& call : calls) {
      if (all.size() > 1 || !content.empty()) all.push_back({.text = "\n"});
      all.push_back({.text = std::string(kMarks[0]), .of_format = true});
      all.push_back({.text = "\n" + call_json(call, "arguments") + "}\n"});
      all.push_back({.text = std::string(kMarks[1]), .of_format = true});
    }
    return all;
  }

  // Each pair of tags holds a call; text before the first belongs to the message.
  Result<std::vector<ToolCall>> parse(std::string_view text, Tools) const override {
    const auto [open, close] = kMarks;
    std::vector<ToolCall> calls;
    for (auto begin = text.find(open); begin != std::string_view::npos; begin = text.find(open)) {
      text.remove_prefix(begin + open.size());
      const auto end = text.find(close);
      if (end == std::string_view::npos) return refused_call("</tool_call> is missing");
      CARNOT_ASSIGN_OR_RETURN(auto call, parse_tool_call(trim(text.substr(0, end)), "arguments"));
      calls.push_back(std::move(call));
      text.remove_prefix(end + close.size());
    }
    return calls;
  }

  std::string_view beside(std::string_view text) const override {
    text = text.substr(0, text.find(kMarks[0]));
    if (text.ends_with('\n')) text.remove_suffix(1);  // the one that written() puts there
    return text;
  }

  std::span<const std::string_view> marks() const override { return kMarks; }

 private:
  static constexpr std::string_view kMarks[] = {"<tool_call>", "</tool_call>"};
};

class BareForm final : public ToolCallForm {
 public:
  bool has_one_call() const override { return true; }

  std::vector<CallText> written(std::string_view, std::span<const ToolCall> calls) const override {
    CARNOT_CHECK_EQ(calls.size(), 1u);
    return {{.text = call_json(calls[0], "parameters") + "}"}};
  }

  // The whole message is the call; some versions begin it with the token of the code interpreter.
  Result<std::vector<ToolCall>> parse(std::string_view text, Tools) const override {
    constexpr std::string_view kPython = "<|python_tag|>";
    std::string_view said = trim(text);
    const bool marked = said.starts_with(kPython);
    if (marked) said = trim(said.substr(kPython.size()));
    if (!marked && !said.starts_with('{')) return std::vector<ToolCall>{};
    auto call = parse_tool_call(said, "parameters");
    const bool looks_like_one = marked || said.find("\"name\"") != std::string_view::npos;
    if (!call && !looks_like_one) return std::vector<ToolCall>{};
    if (!call) return call.error();
    return std::vector<ToolCall>{std::move(call).value()};
  }
};

/// How lists of calls differ.
struct ListStyle {
  std::string_view open{}, blank{}, close{};
  bool ids = false;      ///< each call has one
  bool content = false;  ///< text before the list is written
  std::vector<std::string_view> marks{};
};

class ListedForm final : public ToolCallForm {
 public:
  explicit ListedForm(ListStyle style) : style_(std::move(style)) {}

  std::vector<CallText> written(std::string_view content, std::span<const ToolCall> calls) const override {
    std::string list = "[";
    for (const ToolCall& call : calls) {
      list += (list.size() > 1 ? ", " : "") + call_json(call, "arguments");
      list += (style_.ids ? ", \"id\": " + quoted_json(call.id) : "") + "}";
    }
    return {{.text = std::string(style_.content ? content : "")},
            {.text = std::string(style_.open) + std::string(style_.blank), .of_format = true},
            {.text = list + "]"},
            {.text = std::string(style_.close), .of_format = true}};
  }

  Result<std::vector<ToolCall>> parse(std::string_view text, Tools) const override {
    const auto open = text.find(style_.open);
    if (open == std::string_view::npos) return std::vector<ToolCall>{};
    std::string_view list = text.substr(open + style_.open.size());
    if (!style_.close.empty()) list = list.substr(0, list.rfind(style_.close));
    return parse_tool_call_list(trim(list), style_.ids);
  }

  std::string_view beside(std::string_view text) const override { return text.substr(0, text.find(style_.open)); }
  std::span<const std::string_view> marks() const override { return style_.marks; }

 private:
  ListStyle style_;
};

class NamedForm final : public ToolCallForm {
 public:
  explicit NamedForm(bool ids) : ids_(ids) {}

  std::vector<CallText> written(std::string_view content, std::span<const ToolCall> calls) const override {
    std::vector<CallText> all{{.text = std::string(ids_ ? "" : content)}};
    for (const ToolCall& call : calls) {
      all.push_back({.text = std::string(kOpen), .of_format = true});
      all.push_back({.text = call.name});
      if (ids_) all.push_back({.text = std::string(kId), .of_format = true});
      if (ids_) all.push_back({.text = call.id});
      all.push_back({.text = std::string(kArguments), .of_format = true});
      all.push_back({.text = spaced_json(call.arguments)});
    }
    return all;
  }

  Result<std::vector<ToolCall>> parse(std::string_view text, Tools) const override {
    std::vector<ToolCall> calls;
    for (auto begin = text.find(kOpen); begin != std::string_view::npos; begin = text.find(kOpen)) {
      text.remove_prefix(begin + kOpen.size());
      const std::string_view one = text.substr(0, text.find(kOpen));
      CARNOT_ASSIGN_OR_RETURN(auto call, named_call(one));
      calls.push_back(std::move(call));
    }
    return calls;
  }

  std::string_view beside(std::string_view text) const override { return text.substr(0, text.find(kOpen)); }

 private:
  Result<ToolCall> named_call(std::string_view text) const {
    const auto at = text.find(kArguments);
    if (at == std::string_view::npos) return refused_call("[ARGS] is missing after its name");
    std::string_view name = text.substr(0, at);
    ToolCall call{};
    if (const auto id = name.find(kId); ids_ && id != std::string_view::npos) {
      call.id = trim(name.substr(id + kId.size()));
      name = name.substr(0, id);
    }
    call.name = trim(name);
    if (call.name.empty()) return refused_call("it has no name");
    const auto value = parse_json_object<OrderedJson>(trim(text.substr(at + kArguments.size())), "the arguments");
    if (!value) return refused_call(value.error().message);
    CARNOT_ASSIGN_OR_RETURN(call.arguments, arguments_of(*value));
    return call;
  }

  static constexpr std::string_view kOpen = "[TOOL_CALLS]", kId = "[CALL_ID]", kArguments = "[ARGS]";
  bool ids_;
};

}  // namespace

const ToolCallForm& tagged_tool_calls() {
  static const TaggedForm form;
  return form;
}

const ToolCallForm& bare_tool_call() {
  static const BareForm form;
  return form;
}

const ToolCallForm& listed_tool_calls() {
  static const ListedForm form({.open = "[TOOL_CALLS]", .ids = true});
  return form;
}

const ToolCallForm& spaced_listed_tool_calls() {
  static const ListedForm form({.open = "[TOOL_CALLS]", .blank = " ", .ids = true});
  return form;
}

const ToolCallForm& granite_tool_calls() {
  static const ListedForm form({.open = "<|tool_call|>", .content = true, .marks = {"<|tool_call|>"}});
  return form;
}

const ToolCallForm& phi_tool_calls() {
  static const ListedForm form({.open = "<|tool_call|>",
                                .close = "<|/tool_call|>",
                                .content = true,
                                .marks = {"<|tool_call|>", "<|/tool_call|>"}});
  return form;
}

const ToolCallForm& named_tool_calls() {
  static const NamedForm form(false);
  return form;
}

const ToolCallForm& named_tool_calls_with_ids() {
  static const NamedForm form(true);
  return form;
}

}  // namespace carnot
