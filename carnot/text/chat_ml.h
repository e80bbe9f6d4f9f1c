// text/chat_ml.h -- ChatML: <|im_start|>role\ncontent<|im_end|>\n for each message.
#pragma once

#include "carnot/text/chat.h"
#include "carnot/text/labelled_text.h"

namespace carnot {

/// How the families that write ChatML differ.
struct ChatMlStyle {
  std::string_view name{};
  std::string_view default_system{};  ///< put first where the first message is no system message; none where empty
  bool tool_as_user = false;          ///< tool results stand in a user message, each within <tool_response> tags
};

class ChatMl : public ChatFamily {
 public:
  static constexpr std::string_view kMessageStart = "<|im_start|>";
  static constexpr std::string_view kMessageEnd = "<|im_end|>";

  /// REQUIRES: a tokenizer for which missing_tokens() is empty.
  ChatMl(const ChatMlStyle& style, const Tokenizer& tokenizer) : ChatFamily(tokenizer), style_(style) {}

  /// The tokens of ChatML that are no added tokens of this tokenizer.
  static std::vector<std::string> missing_tokens(const Tokenizer& tokenizer);

  std::string_view name() const override { return style_.name; }
  SpannedTokens render_opening(std::span<const Message> messages, std::string_view prefix) const override;
  SpannedTokens render_reply(std::span<const Message> messages, std::string_view prefix, bool closed) const override;
  std::vector<TokenId> stop_tokens() const override;

 private:
  void add_messages(LabelledText& text, std::span<const Message> messages, SpanKind content_kind) const;
  void add_message(LabelledText& text, std::string_view role, std::string_view content, SpanKind content_kind) const;
  void add_tool_message(LabelledText& text, std::span<const Message> messages, std::size_t index,
                        SpanKind content_kind) const;

  ChatMlStyle style_;
};

}  // namespace carnot
