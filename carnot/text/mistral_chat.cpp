#include "carnot/text/mistral_chat.h"

#include "carnot/base/check.h"
#include "carnot/base/strings.h"
#include "carnot/base/utf8.h"
#include "carnot/text/spaced_json.h"
#include "carnot/text/tool_calls.h"

namespace carnot {
namespace {

constexpr std::string_view kMark = "[TOOL_CALLS]";

std::string mistral_calls(std::span<const ToolCall> calls) {
  std::string text = "[";
  for (const ToolCall& call : calls)
    text += (text.size() > 1 ? ", " : "") + ("{\"name\": " + quoted_json(call.name)) +
            ", \"arguments\": " + spaced_json(call.arguments) + ", \"id\": " + quoted_json(call.id) + "}";
  return text + "]";
}

}  // namespace

void MistralChat::write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const {
  text.add(SpanKind::Template, "<s>");
  const Message* system = !messages.empty() && messages[0].role == "system" ? &messages[0] : nullptr;
  for (const Message& message : messages.subspan(system ? 1 : 0)) {
    const bool first_user = message.role == "user" && !tools.empty();
    if (first_user) add_tools(text, tools);
    if (first_user) tools = {};
    add_message(text, message, system, SpanKind::Prompt);
    if (message.role == "user") system = nullptr;
  }
}

void MistralChat::write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const {
  if (!closed) text.add(SpanKind::Template, "</s>");
  for (const Message& message : messages) add_message(text, message, nullptr, SpanKind::Observation);
}

void MistralChat::add_tools(LabelledText& text, Tools tools) const {
  std::string list;
  for (const std::string& tool : tools)
    list +=
        (list.empty() ? "" : ", ") + ("{\"type\": \"function\", \"function\": " + json_member(tool, "function")) + "}";
  text.add(SpanKind::Template, "[AVAILABLE_TOOLS]" + std::string(style_.blank) + "[" + list + "][/AVAILABLE_TOOLS]");
}

void MistralChat::add_message(LabelledText& text, const Message& message, const Message* system,
                              SpanKind content_kind) const {
  const std::string blank(style_.blank);
  if (message.role == "assistant") return add_assistant_message(text, message, content_kind);
  if (message.role == "tool") {
    text.add(SpanKind::Template, "[TOOL_RESULTS]" + blank + "{\"content\": ");
    text.add(content_kind, message.content);
    text.add(SpanKind::Template, ", \"call_id\": \"" + message.tool_call_id + "\"}[/TOOL_RESULTS]");
    return;
  }
  CARNOT_CHECK(message.role == "user", "role '" + message.role + "'");
  text.add(SpanKind::Template, "[INST]" + blank);
  if (system) {
    text.add(content_kind, system->content);
    text.add(SpanKind::Template, "\n\n");
  }
  text.add(content_kind, message.content);
  text.add(SpanKind::Template, "[/INST]");
}

void MistralChat::add_assistant_message(LabelledText& text, const Message& message, SpanKind content_kind) const {
  const std::string blank(style_.blank);
  if (!message.tool_calls.empty()) {
    write_calls(text, message.content, message.tool_calls, content_kind);
  } else {
    text.add(SpanKind::Template, blank);
    text.add(content_kind, blank.empty() ? std::string_view(message.content) : stripped(message.content));
  }
  text.add(SpanKind::Template, "</s>");
}

// The calls are the whole message.
void MistralChat::write_calls(LabelledText& text, std::string_view, std::span<const ToolCall> calls,
                              SpanKind content_kind) const {
  text.add(SpanKind::Template, "[TOOL_CALLS]" + std::string(style_.blank));
  text.add(content_kind, mistral_calls(calls));
}

std::string_view MistralChat::before_calls(std::string_view text) const { return text.substr(0, text.find(kMark)); }

Status MistralChat::check_places(std::span<const Message> messages, Tools) const {
  return check_system_is_first(messages, name());
}

Result<std::vector<ToolCall>> MistralChat::parse_tool_calls(std::string_view text) const {
  const auto mark = text.find(kMark);
  if (mark == std::string_view::npos) return std::vector<ToolCall>{};
  return parse_tool_call_list(trim(text.substr(mark + kMark.size())), "arguments");
}

}  // namespace carnot
