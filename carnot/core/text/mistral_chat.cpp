#include "carnot/core/text/mistral_chat.h"

#include "carnot/core/base/check.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/spaced_json.h"

namespace carnot {
Status MistralChat::write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const {
  text.add(SpanKind::Template, "<s>");
  const Message* system = !messages.empty() && messages[0].role == "system" ? &messages[0] : nullptr;
  for (const Message& message : messages.subspan(system ? 1 : 0)) {
    const bool first_user = message.role == "user" && !tools.empty();
    if (first_user) add_tools(text, tools);
    if (first_user) tools = {};
    add_message(text, message, system, SpanKind::Prompt);
    if (message.role == "user") system = nullptr;
  }
  return Done{};
}

Status MistralChat::write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const {
  if (!closed) text.add(SpanKind::Template, "</s>");
  for (const Message& message : messages) add_message(text, message, nullptr, SpanKind::Observation);
  return Done{};
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
    call_form()->write(text, message.content, message.tool_calls, content_kind);
  } else {
    text.add(SpanKind::Template, blank);
    text.add(content_kind, blank.empty() ? std::string_view(message.content) : stripped(message.content));
  }
  text.add(SpanKind::Template, "</s>");
}

Status MistralChat::check_places(std::span<const Message> messages, Tools) const {
  return check_system_is_first(messages, name());
}

}  // namespace carnot
