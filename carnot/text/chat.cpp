#include "carnot/text/chat.h"

#include <algorithm>

#include "carnot/text/chat_ml.h"

namespace carnot {
namespace {

constexpr ChatMlStyle kStyles[] = {
    {.name = "chatml"},
    {.name = "qwen2.5",
     .default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
     .tool_as_user = true},
    {.name = "qwen3", .tool_as_user = true},
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// Where two renderings part, in words; empty where they are equal.
std::string difference(const Tokenizer& tokenizer, std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (in_a == a.end() && in_b == b.end()) return {};
  const auto next = [&](auto from, auto end) {
    return from == end ? std::string("nothing") : "'" + std::string(tokenizer.bytes_of(*from)) + "'";
  };
  return "at token " + std::to_string(in_a - a.begin()) + ", behind '" + tokenizer.decode({a.begin(), in_a}) +
         "': " + next(in_a, a.end()) + " and " + next(in_b, b.end());
}

/// A conversation with the borders that matter: blanks, line ends, digits and letters beyond ASCII beside a tag.
const std::vector<Message>& sample_conversation() {
  static const std::vector<Message> kConversation = {
      {.role = "system", .content = "You are a careful agent."},
      {.role = "user", .content = " Board:\n#__P\n\n 3 moves left, café "},
      {.role = "assistant", .content = "<think>Up is free.</think><answer>Up || Left</answer>"},
      {.role = "user", .content = "\nReward: -0.1\n你好 "},
  };
  return kConversation;
}

Status check_text_comes_back(const ChatFamily& chat) {
  for (const Message& message : sample_conversation()) {
    const std::string back = chat.tokenizer().decode(chat.render_inline(message.content).tokens);
    if (back != message.content)
      return Error{std::string(chat.name()) + ": '" + message.content + "' comes back as '" + back + "'"};
  }
  return Done{};
}

}  // namespace

SpannedTokens ChatFamily::render_inline(std::string_view text) const {
  SpannedTokens result{.tokens = tokenizer_->encode(text)};
  extend_spans(result.spans, SpanKind::Observation, static_cast<int>(result.tokens.size()));
  return result;
}

Result<std::unique_ptr<ChatFamily>> make_chat_family(std::string_view name, const Tokenizer& tokenizer) {
  for (const ChatMlStyle& style : kStyles) {
    if (style.name != name) continue;
    if (const auto missing = ChatMl::missing_tokens(tokenizer); !missing.empty())
      return Error{"chat family " + std::string(name) + ": the tokenizer lacks the added tokens " + joined(missing)};
    return std::unique_ptr<ChatFamily>(std::make_unique<ChatMl>(style, tokenizer));
  }
  return Error{"no chat family '" + std::string(name) + "'; expected one of " + joined(chat_family_names())};
}

std::vector<std::string> chat_family_names() {
  std::vector<std::string> names;
  for (const ChatMlStyle& style : kStyles) names.emplace_back(style.name);
  return names;
}

Status check_append_only(const ChatFamily& chat) {
  if (auto status = check_text_comes_back(chat); !status) return status;
  const Tokenizer& tokenizer = chat.tokenizer();
  const std::vector<Message>& messages = sample_conversation();
  const std::vector<TokenId> at_once = chat.render_opening(messages, "").tokens;

  const auto first_two = std::span(messages).first(2);
  const auto last = std::span(messages).last(1);
  for (const bool closed : {true, false}) {
    SpannedTokens turns = chat.render_opening(first_two, "");
    const auto response = tokenizer.encode(messages[2].content);
    turns.tokens.insert(turns.tokens.end(), response.begin(), response.end());
    if (closed) turns.tokens.push_back(chat.stop_tokens()[0]);
    append(turns, chat.render_reply(last, "", closed));
    if (const auto where = difference(tokenizer, turns.tokens, at_once); !where.empty())
      return Error{std::string(chat.name()) + ": rendered turn by turn and at once differ " + where};
  }

  const auto again = tokenizer.encode(tokenizer.decode(at_once));
  if (const auto where = difference(tokenizer, at_once, again); !where.empty())
    return Error{std::string(chat.name()) + ": tokens and the tokens of their text differ " + where};
  return Done{};
}

}  // namespace carnot
