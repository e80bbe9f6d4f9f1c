#include "carnot/core/text/chat_families.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/chat.h"
#include "carnot/core/text/spaced_json.h"
#include "carnot/core/text/template_chat.h"

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

/// The same as Qwen3.5 was trained with it.
std::string parameter_tools_section(Tools tools) {
  std::string section = "# Tools\n\nYou have access to the following functions:\n\n<tools>";
  for (const std::string& tool : tools) section += "\n" + spaced_json(tool);
  return section +
         "\n</tools>\n\nIf you choose to call a function ONLY reply in the following format with NO suffix:\n\n"
         "<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n"
         "<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n"
         "</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n- Function calls MUST follow the "
         "specified "
         "format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags\n- "
         "Required parameters MUST be specified\n- You may provide optional reasoning for your function call in "
         "natural "
         "language BEFORE the function call, but NOT after\n- If there is no function call available, answer the "
         "question like normal with your current knowledge and do not tell the user about function calls\n</IMPORTANT>";
}

/// How the families that write ChatML differ.
struct ChatMlStyle {
  std::string_view name{};
  std::string_view default_system{};  ///< put first where the first message is not a system message; may be empty
  bool tool_as_user = false;          ///< tool results are in a user message, each within <tool_response> tags
  std::string_view head_end{};        ///< after the assistant's head: thinking that begins, or is closed at once
  const ToolCallForm& (*form)() = tagged_tool_calls;
  std::string (*section)(Tools) = tools_section;
  bool tools_first = false;  ///< before the text of the system message
  bool trims = false;        ///< what is not the assistant's is written without blanks at both ends
};

/// ChatML: <|im_start|>role\ncontent<|im_end|>\n for each message (Qwen and others). Functions are offered in the
/// system message within <tools> tags and called within <tool_call> tags.
class ChatMl final : public ChatFamily {
 public:
  /// Added tokens that the format needs.
  static constexpr std::string_view kTokens[] = {"<|im_start|>", "<|im_end|>"};

  /// REQUIRES: a tokenizer with kTokens.
  ChatMl(const ChatMlStyle& style, const Tokenizer& tokenizer) : ChatFamily(tokenizer), style_(style) {}

  std::string_view name() const override { return style_.name; }

 private:
  Status write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const override {
    const Message* system = !messages.empty() && messages[0].role == "system" ? &messages[0] : nullptr;
    add_system(text, system, tools);
    add_messages(text, messages.subspan(system ? 1 : 0), SpanKind::Prompt);
    add_assistant_head(text);
    return Done{};
  }

  Status write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const override {
    text.add(SpanKind::Template, closed ? "\n" : kTail);
    add_messages(text, messages, SpanKind::Observation);
    add_assistant_head(text);
    return Done{};
  }

  std::vector<TokenId> own_stop_tokens() const override { return present_tokens({"<|im_end|>", "<|endoftext|>"}); }

  const ToolCallForm* call_form() const override { return &style_.form(); }

  std::string_view as_said(std::string_view content) const override {
    if (content.starts_with(style_.head_end)) content.remove_prefix(style_.head_end.size());
    return content;
  }

  std::string_view shown(std::string_view content) const { return style_.trims ? stripped(content) : content; }

  void add_system(LabelledText& text, const Message* system, Tools tools) const {
    const bool has_text = system || !style_.default_system.empty();
    if (!has_text && tools.empty()) return;
    const std::string section = tools.empty() ? "" : style_.section(tools);
    const std::string between = has_text && !tools.empty() ? "\n\n" : "";
    text.add(SpanKind::Template, head_of("system"));
    if (style_.tools_first) text.add(SpanKind::Template, section + between);
    if (system)
      text.add(SpanKind::Prompt, shown(system->content));
    else
      text.add(SpanKind::Template, style_.default_system);
    if (!style_.tools_first) text.add(SpanKind::Template, between + section);
    text.add(SpanKind::Template, kTail);
  }

  void add_messages(LabelledText& text, std::span<const Message> messages, SpanKind content_kind) const {
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

  void add_message(LabelledText& text, const Message& message, SpanKind content_kind) const {
    // What was in a head stays there: the template of Qwen3 takes closed thinking out of earlier messages.
    const bool assistant = message.role == "assistant";
    if (assistant)
      add_assistant_head(text);
    else
      text.add(SpanKind::Template, head_of(message.role));
    const std::string_view content = assistant ? as_said(message.content) : shown(message.content);
    if (message.tool_calls.empty())
      text.add(content_kind, content);
    else
      call_form()->write(text, content, message.tool_calls, content_kind);
    text.add(SpanKind::Template, kTail);
  }

  // Neighbouring tool results share one user message.
  void add_tool_message(LabelledText& text, std::span<const Message> messages, std::size_t index,
                        SpanKind content_kind) const {
    const bool first = index == 0 || messages[index - 1].role != "tool";
    const bool last = index + 1 == messages.size() || messages[index + 1].role != "tool";
    text.add(SpanKind::Template, first ? head_of("user") + "<tool_response>\n" : "\n<tool_response>\n");
    text.add(content_kind, shown(messages[index].content));
    text.add(SpanKind::Template, "\n</tool_response>" + std::string(last ? kTail : ""));
  }

  void add_assistant_head(LabelledText& text) const {
    text.add(SpanKind::Template, head_of("assistant") + std::string(style_.head_end));
  }

  ChatMlStyle style_;
};

/// How the versions of Mistral's format differ.
struct MistralStyle {
  std::string_view name{};
  std::string_view blank{};  ///< after control tokens, and before what the assistant says
};

/// Mistral's instruct format with function calls, version 3 and its variant for Tekken: <s>[INST] user[/INST]
/// answer</s> [INST] ... The published templates put the system message and the functions before the last user message,
/// whichever that is at the time; here both stay before the first one, so that history only grows.
class MistralChat final : public ChatFamily {
 public:
  static constexpr std::string_view kTokens[] = {"<s>", "</s>", "[INST]", "[/INST]"};

  /// REQUIRES: a tokenizer with kTokens.
  MistralChat(const MistralStyle& style, const Tokenizer& tokenizer) : ChatFamily(tokenizer), style_(style) {}

  std::string_view name() const override { return style_.name; }

 private:
  Status write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const override {
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

  Status write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const override {
    if (!closed) text.add(SpanKind::Template, "</s>");
    for (const Message& message : messages) add_message(text, message, nullptr, SpanKind::Observation);
    return Done{};
  }

  std::vector<TokenId> own_stop_tokens() const override { return present_tokens({"</s>"}); }
  std::string_view before_speech() const override { return style_.blank; }
  bool head_ends_in_token() const override { return true; }
  const ToolCallForm* call_form() const override {
    return style_.blank.empty() ? &listed_tool_calls() : &spaced_listed_tool_calls();
  }
  Status check_places(std::span<const Message> messages, Tools) const override {
    for (std::size_t i = 1; i < messages.size(); ++i)
      if (messages[i].role == "system")
        return Error{"chat format " + std::string(name()) + " knows a system message at the start only; message " +
                     std::to_string(i + 1) + " is another"};
    return Done{};
  }

  void add_message(LabelledText& text, const Message& message, const Message* system, SpanKind content_kind) const {
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

  void add_assistant_message(LabelledText& text, const Message& message, SpanKind content_kind) const {
    const std::string blank(style_.blank);
    if (!message.tool_calls.empty()) {
      call_form()->write(text, message.content, message.tool_calls, content_kind);
    } else {
      text.add(SpanKind::Template, blank);
      text.add(content_kind, blank.empty() ? std::string_view(message.content) : stripped(message.content));
    }
    text.add(SpanKind::Template, "</s>");
  }

  void add_tools(LabelledText& text, Tools tools) const {
    std::string list;
    for (const std::string& tool : tools)
      list += (list.empty() ? "" : ", ") + ("{\"type\": \"function\", \"function\": " + json_member(tool, "function")) +
              "}";
    text.add(SpanKind::Template, "[AVAILABLE_TOOLS]" + std::string(style_.blank) + "[" + list + "][/AVAILABLE_TOOLS]");
  }

  MistralStyle style_;
};

constexpr std::string_view kThinkingBegun = "<think>\n", kThinkingClosed = "<think>\n\n</think>\n\n";

constexpr ChatMlStyle qwen35_style(std::string_view name, std::string_view head_end, const ToolCallForm& (*form)()) {
  return {.name = name,
          .tool_as_user = true,
          .head_end = head_end,
          .form = form,
          .section = parameter_tools_section,
          .tools_first = true,
          .trims = true};
}

constexpr ChatMlStyle kChatMl[] = {
    {.name = "chatml"},
    {.name = "qwen2", .default_system = "You are a helpful assistant."},
    {.name = "qwen2.5",
     .default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
     .tool_as_user = true},
    {.name = "qwen3", .tool_as_user = true},
    {.name = "qwen3_no_think", .tool_as_user = true, .head_end = kThinkingClosed},
    qwen35_style("qwen3.5", kThinkingBegun, parameter_tool_calls),
    qwen35_style("qwen3.5_no_think", kThinkingClosed, parameter_tool_calls),
    qwen35_style("qwen3.6", kThinkingBegun, json_parameter_tool_calls),
    qwen35_style("qwen3.6_no_think", kThinkingClosed, json_parameter_tool_calls),
};
constexpr MistralStyle kMistral[] = {{.name = "mistral", .blank = " "}, {.name = "mistral_nemo"}};

/// What a published template contains, and what it must not, to be a family's.
struct FamilyMarks {
  std::string_view family;
  std::string_view holds[2];
  std::string_view lacks;
};
/// The first row that fits counts.
constexpr FamilyMarks kMarks[] = {
    {"mistral", {"\"[AVAILABLE_TOOLS] [\"", "\"[INST] \""}, "[SYSTEM_PROMPT]"},
    {"mistral_nemo", {"\"[AVAILABLE_TOOLS][\"", "\"[INST]\""}, "[SYSTEM_PROMPT]"},
    {"qwen2.5", {"<|im_start|>", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."}, "<think>"},
    {"qwen3", {"<|im_start|>", "reasoning_content.strip('\\n')"}, "You are Qwen"},
    {"qwen3.5_no_think",
     {"<parameter=", "enable_thinking is defined and enable_thinking is true"},
     "preserve_thinking"},
    {"qwen3.5", {"<parameter=", "reasoning_content|trim"}, "preserve_thinking"},
    {"qwen3.6", {"<parameter=", "preserve_thinking is defined and preserve_thinking is true"}, "reasoning_effort"},
    {"qwen2", {"<|im_start|>system\\nYou are a helpful assistant.<|im_end|>", ""}, "tool"},
    {"chatml", {"'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'", ""}, "system"},
};

/// Calls visit(name, added tokens that it needs, function that makes it) for each family.
template <class Visit>
void for_each_family(const Visit& visit) {
  const auto all_of = [&]<class Family>(std::type_identity<Family>, const auto& styles) {
    for (const auto& style : styles)
      visit(style.name, std::span<const std::string_view>(Family::kTokens),
            [&](const Tokenizer& tokenizer) -> std::unique_ptr<ChatFamily> {
              return std::make_unique<Family>(style, tokenizer);
            });
  };
  all_of(std::type_identity<ChatMl>(), kChatMl);
  all_of(std::type_identity<MistralChat>(), kMistral);
}

}  // namespace

Result<std::unique_ptr<ChatFamily>> make_chat_family(std::string_view name, const Tokenizer& tokenizer) {
  std::unique_ptr<ChatFamily> made;
  std::vector<std::string> missing;
  for_each_family([&](std::string_view family, std::span<const std::string_view> tokens, const auto& make) {
    if (family != name) return;
    for (const std::string_view token : tokens) {
      const auto id = tokenizer.id_of(token);
      if (!id || !tokenizer.is_added(*id)) missing.emplace_back(token);
    }
    if (missing.empty()) made = make(tokenizer);
  });
  if (made) return made;
  if (!missing.empty())
    return Error{"chat family " + std::string(name) + ": the tokenizer lacks the added tokens " + join(missing)};
  if (TemplateChat::is_name(name)) return Error{"chat family " + std::string(name) + ": no model folder has one"};
  return Error{"no chat family '" + std::string(name) + "'; expected one of " + join(chat_family_names())};
}

std::vector<std::string> chat_family_names() {
  std::vector<std::string> names;
  for_each_family([&](std::string_view family, const auto&, const auto&) { names.emplace_back(family); });
  names.insert(names.end(), std::begin(TemplateChat::kNames), std::end(TemplateChat::kNames));
  return names;
}

std::string_view chat_family_of_template(std::string_view jinja) {
  const auto holds = [&](std::string_view text) { return jinja.find(text) != std::string_view::npos; };
  for (const FamilyMarks& marks : kMarks)
    if (holds(marks.holds[0]) && holds(marks.holds[1]) && !holds(marks.lacks)) return marks.family;
  return {};
}

}  // namespace carnot
