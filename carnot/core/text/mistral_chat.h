// text/mistral_chat.h -- Mistral's instruct format with function calls: version 3 and its variant for Tekken.
//
// <s>[INST] user[/INST] answer</s>[INST] ... The published templates put the system message and the functions before
// the last user message, whichever that is at the time; here both stay before the first one, so that history only
// grows.
#pragma once

#include "carnot/core/text/chat.h"

namespace carnot {

/// How the versions differ.
struct MistralStyle {
  std::string_view name{};
  std::string_view blank{};  ///< after control tokens, and before what the assistant says
};

class MistralChat : public ChatFamily {
 public:
  static constexpr std::string_view kTokens[] = {"<s>", "</s>", "[INST]", "[/INST]"};

  /// REQUIRES: a tokenizer with kTokens.
  MistralChat(const MistralStyle& style, const Tokenizer& tokenizer) : ChatFamily(tokenizer), style_(style) {}

  std::string_view name() const override { return style_.name; }

 private:
  Status write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const override;
  Status write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const override;
  std::vector<TokenId> own_stop_tokens() const override { return present_tokens({"</s>"}); }
  std::string_view before_speech() const override { return style_.blank; }
  bool head_ends_in_token() const override { return true; }
  const ToolCallForm* call_form() const override {
    return style_.blank.empty() ? &listed_tool_calls() : &spaced_listed_tool_calls();
  }
  Status check_places(std::span<const Message> messages, Tools tools) const override;

  void add_message(LabelledText& text, const Message& message, const Message* system, SpanKind content_kind) const;
  void add_assistant_message(LabelledText& text, const Message& message, SpanKind content_kind) const;
  void add_tools(LabelledText& text, Tools tools) const;

  MistralStyle style_;
};

}  // namespace carnot
