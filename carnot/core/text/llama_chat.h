// text/llama_chat.h -- the formats of Llama 3 (headers) and Llama 2 ([INST] and <<SYS>>).
#pragma once

#include "carnot/core/text/chat.h"

namespace carnot {

/// How Llama 3 and its later versions differ.
struct HeaderStyle {
  std::string_view name{};
  /// From 3.1 on a system message is always there and begins with two dates, and functions are offered in the first
  /// user message. Today is the day that the templates of 3.1 and 3.3 fix, so that prompts are the same every day.
  bool dated = false;
};

/// <|start_header_id|>role<|end_header_id|>\n\ncontent<|eot_id|> for each message; contents are trimmed.
class HeaderChat : public ChatFamily {
 public:
  static constexpr std::string_view kTokens[] = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
                                                 "<|eot_id|>"};

  /// REQUIRES: a tokenizer with kTokens.
  HeaderChat(const HeaderStyle& style, const Tokenizer& tokenizer) : ChatFamily(tokenizer), style_(style) {}

  std::string_view name() const override { return style_.name; }

 private:
  Status write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const override;
  Status write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const override;
  std::vector<TokenId> own_stop_tokens() const override {
    return present_tokens({"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"});
  }
  const ToolCallForm* call_form() const override { return style_.dated ? &bare_tool_call() : nullptr; }
  Status check_places(std::span<const Message> messages, Tools tools) const override;

  void add_message(LabelledText& text, const Message& message, SpanKind content_kind) const;

  HeaderStyle style_;
};

/// Llama 2: <s>[INST] user [/INST] answer </s>, a system message within <<SYS>> tags in the first user message.
class Llama2Chat : public ChatFamily {
 public:
  static constexpr std::string_view kTokens[] = {"<s>", "</s>"};
  static constexpr std::string_view kName = "llama2";

  /// REQUIRES: a tokenizer with kTokens.
  explicit Llama2Chat(const Tokenizer& tokenizer) : ChatFamily(tokenizer) {}

  std::string_view name() const override { return kName; }

 private:
  Status write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const override;
  Status write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const override;
  std::vector<TokenId> own_stop_tokens() const override { return present_tokens({"</s>"}); }
  std::string_view before_speech() const override { return " "; }
  std::string_view after_speech() const override { return " "; }
  const ToolCallForm* call_form() const override { return nullptr; }
  Status check_places(std::span<const Message> messages, Tools tools) const override;

  void add_messages(LabelledText& text, std::span<const Message> messages, const Message* system,
                    SpanKind content_kind) const;
};

}  // namespace carnot
