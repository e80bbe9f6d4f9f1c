#include "carnot/core/text/chat_ml.h"

#include "carnot/core/base/check.h"
#include "carnot/core/text/spaced_json.h"

namespace carnot {
namespace {

constexpr std::string_view kTail = "<|im_end|>\n";

std::string head_of(std::string_view role) { return "<|im_start|>" + std::string(role) + "\n"; }

/// The system message's section that offers functions, as Qwen2.5 and Qwen3 were trained with it.
std::string tools_section(Tools tools) {
  std::string section =
      "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function "
      "signatures within <tools></tools> XML tags:\n<tools>";
  for (const std::string& tool : tools) section += "\n" + spaced_json(tool);
  return section +
         "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
         "<tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": "
         "<args-json-object>}\n</tool_call>";
}

}  // namespace

Status ChatMl::write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const {
  const Message* system = !messages.empty() && messages[0].role == "system" ? &messages[0] : nullptr;
  add_system(text, system, tools);
  add_messages(text, messages.subspan(system ? 1 : 0), SpanKind::Prompt);
  add_assistant_head(text);
  return Done{};
}

Status ChatMl::write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const {
  text.add(SpanKind::Template, closed ? "\n" : kTail);
  add_messages(text, messages, SpanKind::Observation);
  add_assistant_head(text);
  return Done{};
}

void ChatMl::add_assistant_head(LabelledText& text) const {
  text.add(SpanKind::Template, head_of("assistant") + std::string(style_.head_end));
}

void ChatMl::add_system(LabelledText& text, const Message* system, Tools tools) const {
  if (!system && style_.default_system.empty() && tools.empty()) return;
  text.add(SpanKind::Template, head_of("system"));
  if (system)
    text.add(SpanKind::Prompt, system->content);
  else
    text.add(SpanKind::Template, style_.default_system);
  const bool has_text = system || !style_.default_system.empty();
  if (!tools.empty()) text.add(SpanKind::Template, (has_text ? "\n\n" : "") + tools_section(tools));
  text.add(SpanKind::Template, kTail);
}

void ChatMl::add_messages(LabelledText& text, std::span<const Message> messages, SpanKind content_kind) const {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    CARNOT_CHECK(role == "system" || role == "user" || role == "assistant" || role == "tool", "role '" + role + "'");
    if (role == "tool" && style_.tool_as_user) {
      add_tool_message(text, messages, i, content_kind);
    } else {
      add_message(text, messages[i], content_kind);
    }
  }
}

void ChatMl::add_message(LabelledText& text, const Message& message, SpanKind content_kind) const {
  // What was in a head stays there: the template of Qwen3 takes closed thinking out of earlier messages.
  if (message.role == "assistant")
    add_assistant_head(text);
  else
    text.add(SpanKind::Template, head_of(message.role));
  if (message.tool_calls.empty())
    text.add(content_kind, message.content);
  else
    call_form()->write(text, message.content, message.tool_calls, content_kind);
  text.add(SpanKind::Template, kTail);
}

// Neighbouring tool results share one user message.
void ChatMl::add_tool_message(LabelledText& text, std::span<const Message> messages, std::size_t index,
                              SpanKind content_kind) const {
  const bool first = index == 0 || messages[index - 1].role != "tool";
  const bool last = index + 1 == messages.size() || messages[index + 1].role != "tool";
  text.add(SpanKind::Template, first ? head_of("user") + "<tool_response>\n" : "\n<tool_response>\n");
  text.add(content_kind, messages[index].content);
  text.add(SpanKind::Template, "\n</tool_response>" + std::string(last ? kTail : ""));
}

}  // namespace carnot
