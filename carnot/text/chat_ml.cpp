#include "carnot/text/chat_ml.h"

#include <algorithm>

#include "carnot/base/check.h"

namespace carnot {
namespace {

bool is_added_token(const Tokenizer& tokenizer, std::string_view text) {
  const auto id = tokenizer.id_of(text);
  return id && tokenizer.is_added(*id);
}

std::string head_of(std::string_view role) { return std::string(ChatMl::kMessageStart) + std::string(role) + "\n"; }

const std::string& tail() {
  static const std::string kTail = std::string(ChatMl::kMessageEnd) + "\n";
  return kTail;
}

}  // namespace

std::vector<std::string> ChatMl::missing_tokens(const Tokenizer& tokenizer) {
  std::vector<std::string> missing;
  for (const std::string_view token : {kMessageStart, kMessageEnd})
    if (!is_added_token(tokenizer, token)) missing.emplace_back(token);
  return missing;
}

SpannedTokens ChatMl::render_opening(std::span<const Message> messages, std::string_view prefix) const {
  LabelledText text(tokenizer());
  const bool has_system = !messages.empty() && messages[0].role == "system";
  if (!has_system && !style_.default_system.empty())
    add_message(text, "system", style_.default_system, SpanKind::Template);
  add_messages(text, messages, SpanKind::Prompt);
  text.add(SpanKind::Template, head_of("assistant"));
  text.add(SpanKind::Prompt, prefix);
  return text.tokenize();
}

SpannedTokens ChatMl::render_reply(std::span<const Message> messages, std::string_view prefix, bool closed) const {
  LabelledText text(tokenizer());
  text.add(SpanKind::Template, closed ? "\n" : tail());
  add_messages(text, messages, SpanKind::Observation);
  text.add(SpanKind::Template, head_of("assistant"));
  text.add(SpanKind::Prompt, prefix);
  return text.tokenize();
}

std::vector<TokenId> ChatMl::stop_tokens() const {
  std::vector<TokenId> stops{*tokenizer().id_of(kMessageEnd)};
  if (is_added_token(tokenizer(), "<|endoftext|>")) stops.push_back(*tokenizer().id_of("<|endoftext|>"));
  return stops;
}

void ChatMl::add_messages(LabelledText& text, std::span<const Message> messages, SpanKind content_kind) const {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    CARNOT_CHECK(role == "system" || role == "user" || role == "assistant" || role == "tool", "role '" + role + "'");
    if (role == "tool" && style_.tool_as_user) {
      add_tool_message(text, messages, i, content_kind);
    } else {
      add_message(text, role, messages[i].content, content_kind);
    }
  }
}

void ChatMl::add_message(LabelledText& text, std::string_view role, std::string_view content,
                         SpanKind content_kind) const {
  text.add(SpanKind::Template, head_of(role));
  text.add(content_kind, content);
  text.add(SpanKind::Template, tail());
}

// Neighbouring tool results share one user message.
void ChatMl::add_tool_message(LabelledText& text, std::span<const Message> messages, std::size_t index,
                              SpanKind content_kind) const {
  const bool first = index == 0 || messages[index - 1].role != "tool";
  const bool last = index + 1 == messages.size() || messages[index + 1].role != "tool";
  text.add(SpanKind::Template, first ? head_of("user") + "<tool_response>\n" : "\n<tool_response>\n");
  text.add(content_kind, messages[index].content);
  text.add(SpanKind::Template, "\n</tool_response>" + (last ? tail() : std::string()));
}

}  // namespace carnot
