#include "carnot/core/text/llama_chat.h"

#include "carnot/core/base/check.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/spaced_json.h"

namespace carnot {
namespace {

constexpr std::string_view kDates = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";

std::string llama_head(std::string_view role) {
  return "<|start_header_id|>" + std::string(role) + "<|end_header_id|>\n\n";
}

/// What precedes the first user message where functions are offered, as Llama 3.1 was trained with it.
std::string llama_tools(Tools tools) {
  std::string section =
      "Given the following functions, please respond with a JSON for a function call with its proper arguments that "
      "best answers the given prompt.\n\nRespond in the format {\"name\": function name, \"parameters\": dictionary of "
      "argument name and its value}.Do not use variables.\n\n";
  for (const std::string& tool : tools) section += indented_json(tool) + "\n\n";
  return section;
}

}  // namespace

Status HeaderChat::write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const {
  text.add(SpanKind::Template, "<|begin_of_text|>");
  const bool has_system = !messages.empty() && messages[0].role == "system";
  if (style_.dated) {
    text.add(SpanKind::Template,
             llama_head("system") + (tools.empty() ? "" : "Environment: ipython\n") + std::string(kDates));
    if (has_system) text.add(SpanKind::Prompt, stripped(messages[0].content));
    text.add(SpanKind::Template, "<|eot_id|>");
    if (has_system) messages = messages.subspan(1);
  }
  if (!tools.empty()) {
    CARNOT_CHECK(!messages.empty(), "functions are offered in the first user message, and there is none");
    text.add(SpanKind::Template, llama_head("user") + llama_tools(tools));
    text.add(SpanKind::Prompt, stripped(messages[0].content));
    text.add(SpanKind::Template, "<|eot_id|>");
    messages = messages.subspan(1);
  }
  for (const Message& message : messages) add_message(text, message, SpanKind::Prompt);
  text.add(SpanKind::Template, llama_head("assistant"));
  return Done{};
}

Status HeaderChat::write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const {
  if (!closed) text.add(SpanKind::Template, "<|eot_id|>");
  for (const Message& message : messages) add_message(text, message, SpanKind::Observation);
  text.add(SpanKind::Template, llama_head("assistant"));
  return Done{};
}

void HeaderChat::add_message(LabelledText& text, const Message& message, SpanKind content_kind) const {
  const std::string& role = message.role;
  CARNOT_CHECK(role == "system" || role == "user" || role == "assistant" || role == "tool", "role '" + role + "'");
  CARNOT_CHECK(message.tool_calls.empty() || takes_tools(), std::string(name()) + " has no way to call functions");
  const bool result = role == "tool" && style_.dated;
  text.add(SpanKind::Template, llama_head(result ? "ipython" : role));
  if (result)
    text.add(content_kind, quoted_json(message.content));
  else if (!message.tool_calls.empty())
    call_form()->write(text, message.content, message.tool_calls, content_kind);
  else
    text.add(content_kind, stripped(message.content));
  text.add(SpanKind::Template, "<|eot_id|>");
}

Status HeaderChat::check_places(std::span<const Message> messages, Tools tools) const {
  for (const Message& message : messages)
    if (message.tool_calls.size() > 1)
      return Error{"chat format " + std::string(name()) + " has one tool call in a message, not several"};
  const bool has_system = !messages.empty() && messages[0].role == "system";
  if (!tools.empty() && messages.size() <= (has_system ? 1u : 0u))
    return Error{"chat format " + std::string(name()) + " offers tools in the first user message, and there is none"};
  return Done{};
}

Status Llama2Chat::check_places(std::span<const Message> messages, Tools) const {
  return check_system_is_first(messages, name());
}

Status Llama2Chat::write_opening(LabelledText& text, std::span<const Message> messages, Tools) const {
  const Message* system = !messages.empty() && messages[0].role == "system" ? &messages[0] : nullptr;
  add_messages(text, messages.subspan(system ? 1 : 0), system, SpanKind::Prompt);
  return Done{};
}

Status Llama2Chat::write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const {
  if (!closed) text.add(SpanKind::Template, "</s>");
  add_messages(text, messages, nullptr, SpanKind::Observation);
  return Done{};
}

void Llama2Chat::add_messages(LabelledText& text, std::span<const Message> messages, const Message* system,
                              SpanKind content_kind) const {
  for (const Message& message : messages) {
    if (message.role == "assistant") {
      text.add(SpanKind::Template, " ");
      text.add(content_kind, stripped(message.content));
      text.add(SpanKind::Template, " </s>");
      continue;
    }
    CARNOT_CHECK(message.role == "user" || message.role == "tool", "role '" + message.role + "'");
    text.add(SpanKind::Template, "<s>[INST] ");
    if (system) {
      text.add(SpanKind::Template, "<<SYS>>\n");
      text.add(content_kind, system->content);
      text.add(SpanKind::Template, "\n<</SYS>>\n\n");
    }
    text.add(content_kind, system ? right_stripped(message.content) : stripped(message.content));
    text.add(SpanKind::Template, " [/INST]");
    system = nullptr;
  }
}

}  // namespace carnot
