// text/chat_ml.h -- ChatML: <|im_start|>role\ncontent<|im_end|>\n for each message (Qwen and others).
//
// Functions are offered in the system message within <tools> tags and called within <tool_call> tags.
#pragma once

#include "carnot/core/text/chat.h"

namespace carnot {

/// How the families that write ChatML differ.
struct ChatMlStyle {
  std::string_view name{};
  std::string_view default_system{};  ///< put first where the first message is no system message; empty if empty
  bool tool_as_user = false;          ///< tool results are in a user message, each within <tool_response> tags
  std::string_view head_end{};        ///< after the assistant's head: thinking that is closed at once
};

class ChatMl : public ChatFamily {
 public:
  /// Added tokens that the format needs.
  static constexpr std::string_view kTokens[] = {"<|im_start|>", "<|im_end|>"};

  /// REQUIRES: a tokenizer with kTokens.
  ChatMl(const ChatMlStyle& style, const Tokenizer& tokenizer) : ChatFamily(tokenizer), style_(style) {}

  std::string_view name() const override { return style_.name; }

 private:
  Status write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const override;
  Status write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const override;
  std::vector<TokenId> own_stop_tokens() const override { return present_tokens({"<|im_end|>", "<|endoftext|>"}); }

  const ToolCallForm* call_form() const override { return &tagged_tool_calls(); }

  void add_system(LabelledText& text, const Message* system, Tools tools) const;
  void add_messages(LabelledText& text, std::span<const Message> messages, SpanKind content_kind) const;
  void add_message(LabelledText& text, const Message& message, SpanKind content_kind) const;
  void add_tool_message(LabelledText& text, std::span<const Message> messages, std::size_t index,
                        SpanKind content_kind) const;
  void add_assistant_head(LabelledText& text) const;

  ChatMlStyle style_;
};

}  // namespace carnot
