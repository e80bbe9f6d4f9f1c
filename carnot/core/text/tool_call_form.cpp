#include "carnot/core/text/tool_call_form.h"

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/text/spaced_json.h"

namespace carnot {
namespace {

Error refused(const std::string& why) { return Error{"this tool call cannot be read: " + why}; }

Result<std::string> arguments_of(const OrderedJson& value) {
  if (value.is_object()) return spaced_json(json_line(value));
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

/// A call `{"name": ..., KEY: {...}}`; KEY holds the arguments ("arguments", "parameters"), an object or a string with
/// one; without KEY the call has none. Arguments come back as one line of JSON, keys in their order.
Result<ToolCall> parse_tool_call(std::string_view json, std::string_view arguments_key) {
  const auto value = parse_json<OrderedJson>(json, "the call");
  if (!value) return refused(value.error().message);
  return call_of(*value, arguments_key);
}

/// A list of such calls, not empty. An "id" is kept: formats that write lists have one.
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

class TaggedForm final : public ToolCallForm {
 public:
  std::string written(std::string_view content, std::span<const ToolCall> calls) const override {
    std::string all(content);
    for (const ToolCall& call : calls)
      all += (all.empty() ? "" : "\n") + std::string(kOpen) + "\n{\"name\": " + quoted_json(call.name) +
             ", \"arguments\": " + spaced_json(call.arguments) + "}\n" + std::string(kClose);
    return all;
  }

  // Each pair of tags holds a call; text before the first belongs to the message.
  Result<std::vector<ToolCall>> parse(std::string_view text) const override {
    std::vector<ToolCall> calls;
    for (auto begin = text.find(kOpen); begin != std::string_view::npos; begin = text.find(kOpen)) {
      text.remove_prefix(begin + kOpen.size());
      const auto end = text.find(kClose);
      if (end == std::string_view::npos) return Error{"this tool call cannot be read: </tool_call> is missing"};
      CARNOT_ASSIGN_OR_RETURN(auto call, parse_tool_call(trim(text.substr(0, end)), "arguments"));
      calls.push_back(std::move(call));
      text.remove_prefix(end + kClose.size());
    }
    return calls;
  }

  std::string_view beside(std::string_view text) const override {
    text = text.substr(0, text.find(kOpen));
    if (text.ends_with('\n')) text.remove_suffix(1);  // the one that written() puts there
    return text;
  }

 private:
  static constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
};

class BareForm final : public ToolCallForm {
 public:
  bool has_one_call() const override { return true; }

  std::string written(std::string_view, std::span<const ToolCall> calls) const override {
    CARNOT_CHECK_EQ(calls.size(), 1u);
    return "{\"name\": " + quoted_json(calls[0].name) + ", \"parameters\": " + spaced_json(calls[0].arguments) + "}";
  }

  // The whole message is the call; some versions begin it with the token of the code interpreter.
  Result<std::vector<ToolCall>> parse(std::string_view text) const override {
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

class ListedForm final : public ToolCallForm {
 public:
  explicit ListedForm(std::string_view blank) : head_(std::string(kMark) + std::string(blank)) {}

  std::string head() const override { return head_; }

  std::string written(std::string_view, std::span<const ToolCall> calls) const override {
    std::string text = "[";
    for (const ToolCall& call : calls)
      text += (text.size() > 1 ? ", " : "") + ("{\"name\": " + quoted_json(call.name)) +
              ", \"arguments\": " + spaced_json(call.arguments) + ", \"id\": " + quoted_json(call.id) + "}";
    return text + "]";
  }

  Result<std::vector<ToolCall>> parse(std::string_view text) const override {
    const auto mark = text.find(kMark);
    if (mark == std::string_view::npos) return std::vector<ToolCall>{};
    return parse_tool_call_list(trim(text.substr(mark + kMark.size())), "arguments");
  }

  std::string_view beside(std::string_view text) const override { return text.substr(0, text.find(kMark)); }

 private:
  static constexpr std::string_view kMark = "[TOOL_CALLS]";
  std::string head_;
};

}  // namespace

void ToolCallForm::write(LabelledText& text, std::string_view content, std::span<const ToolCall> calls,
                         SpanKind kind) const {
  text.add(SpanKind::Template, head());
  text.add(kind, written(content, calls));
}

const ToolCallForm& tagged_tool_calls() {
  static const TaggedForm form;
  return form;
}

const ToolCallForm& bare_tool_call() {
  static const BareForm form;
  return form;
}

const ToolCallForm& listed_tool_calls() {
  static const ListedForm form("");
  return form;
}

const ToolCallForm& spaced_listed_tool_calls() {
  static const ListedForm form(" ");
  return form;
}

std::span<const ToolCallForm* const> tool_call_forms() {
  static const ToolCallForm* const forms[] = {&tagged_tool_calls(), &bare_tool_call(), &listed_tool_calls(),
                                              &spaced_listed_tool_calls()};
  return forms;
}

}  // namespace carnot
