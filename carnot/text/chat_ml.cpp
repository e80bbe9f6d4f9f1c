#include "carnot/text/chat_ml.h"

#include "carnot/base/check.h"
#include "carnot/base/strings.h"
#include "carnot/text/spaced_json.h"
#include "carnot/text/tool_calls.h"

namespace carnot {
namespace {

constexpr std::string_view kTail = "<|im_end|>\n";
constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";

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

std::string tagged_call(const ToolCall& call) {
  return "<tool_call>\n{\"name\": " + quoted_json(call.name) + ", \"arguments\": " + spaced_json(call.arguments) +
         "}\n</tool_call>";
}

}  // namespace

void ChatMl::write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const {
  const Message* system = !messages.empty() && messages[0].role == "system" ? &messages[0] : nullptr;
  add_system(text, system, tools);
  add_messages(text, messages.subspan(system ? 1 : 0), SpanKind::Prompt);
  add_assistant_head(text);
}

void ChatMl::write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const {
  text.add(SpanKind::Template, closed ? "\n" : kTail);
  add_messages(text, messages, SpanKind::Observation);
  add_assistant_head(text);
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
    write_calls(text, message.content, message.tool_calls, content_kind);
  text.add(SpanKind::Template, kTail);
}

void ChatMl::write_calls(LabelledText& text, std::string_view content, std::span<const ToolCall> calls,
                         SpanKind content_kind) const {
  std::string all(content);
  for (const ToolCall& call : calls) all += (all.empty() ? "" : "\n") + tagged_call(call);
  text.add(content_kind, all);
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

std::string_view ChatMl::before_calls(std::string_view text) const {
  text = text.substr(0, text.find(kOpen));
  if (text.ends_with('\n')) text.remove_suffix(1);  // the one that write_calls() puts there
  return text;
}

// Each pair of tags holds a call; text before the first belongs to the message.
Result<std::vector<ToolCall>> ChatMl::parse_tool_calls(std::string_view text) const {
  std::vector<ToolCall> calls;
  for (auto begin = text.find(kOpen); begin != std::string_view::npos; begin = text.find(kOpen)) {
    text.remove_prefix(begin + kOpen.size());
    const auto end = text.find(kClose);
    if (end == std::string_view::npos) return Error{"this tool call cannot be read: </tool_call> is missing"};
    auto call = parse_tool_call(trim(text.substr(0, end)), "arguments");
    if (!call) return call.error();
    calls.push_back(std::move(call).value());
    text.remove_prefix(end + kClose.size());
  }
  return calls;
}

}  // namespace carnot
