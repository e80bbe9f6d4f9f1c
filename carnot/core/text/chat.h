// text/chat.h -- messages to tokens with spans; a conversation only ever grows at its end.
//
// A trajectory is its token ids. What the policy sampled stays as sampled; what the environment says is rendered
// and appended. No history is rendered twice. Where a published template changes what it wrote before (drops earlier
// thinking, moves the system message to the last user message), the first rendering is kept: docs/models.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/text/labelled_text.h"
#include "carnot/core/text/tokenizer.h"
#include "carnot/core/text/tool_call_form.h"

namespace carnot {

/// One family's way to write a conversation ("qwen2.5", ...).
///
/// The text of messages comes from users, tools and worlds. Control tokens in it (<|im_end|>) are spelled as other text
/// is, so that the author of a message can neither end it nor impersonate another role. A `prefix` belongs to the
/// format.
///
/// A function named try_ fails if Tokenizer::try_encode() does, and where the format is a template that refuses the
/// messages (text/template_chat.h); the same without it REQUIRES that it does not.
class ChatFamily {
 public:
  virtual ~ChatFamily() = default;

  virtual std::string_view name() const = 0;

  /// The opening: all messages, then the head of the assistant's message, then `prefix` (for example "<think>").
  /// Scaffolding and tools are Template; contents and prefix are Prompt. REQUIRES: tools are JSON objects, and none
  /// where takes_tools() is false.
  Result<SpannedTokens> try_render_opening(std::span<const Message> messages, std::string_view prefix,
                                           Tools tools = {}) const;
  SpannedTokens render_opening(std::span<const Message> messages, std::string_view prefix, Tools tools = {}) const {
    return try_render_opening(messages, prefix, tools).value();
  }

  /// What follows an assistant message that the policy ended (`closed`: its last token was a stop token): the
  /// messages, the head of the next assistant message, `prefix`. Contents are Observation.
  Result<SpannedTokens> try_render_reply(std::span<const Message> messages, std::string_view prefix, bool closed) const;
  SpannedTokens render_reply(std::span<const Message> messages, std::string_view prefix, bool closed) const {
    return try_render_reply(messages, prefix, closed).value();
  }

  /// Text put inline into the running assistant message (a tool's result); all of it Observation.
  Result<SpannedTokens> try_render_inline(std::string_view text) const;
  SpannedTokens render_inline(std::string_view text) const { return try_render_inline(text).value(); }

  /// The tokens of a policy that says `content` after render_opening() or render_reply() with this prefix; without
  /// the stop token that follows where the message `ends`.
  Result<std::vector<TokenId>> try_spoken(std::string_view content, std::string_view prefix, bool ends) const;
  std::vector<TokenId> spoken(std::string_view content, std::string_view prefix, bool ends) const {
    return try_spoken(content, prefix, ends).value();
  }

  /// The same for a policy that calls functions: `content`, where the format has text next to calls, and the calls.
  /// REQUIRES: takes_tools(); arguments are JSON objects.
  Result<std::vector<TokenId>> try_spoken_calls(std::string_view content, std::span<const ToolCall> calls,
                                                std::string_view prefix) const;
  std::vector<TokenId> spoken_calls(std::string_view content, std::span<const ToolCall> calls,
                                    std::string_view prefix) const {
    return try_spoken_calls(content, calls, prefix).value();
  }

  /// Whether the format says how functions are offered and called.
  bool takes_tools() const { return call_form() != nullptr; }
  /// Says that it does not, and why.
  Status check_takes_tools() const;

  /// Reads the calls of an assistant message written in this format: the inverse of what render_opening() writes for
  /// them. A message without anything that looks like a call has none; what looks like one and cannot be read is
  /// reported in `problem`, for the policy to read. `tools`, as they were offered, say what values are where a format
  /// writes strings without quotes. REQUIRES: takes_tools().
  PolicyResponse parse_response(std::string text, Tools tools = {}) const;

  /// What such a message says next to its calls, as write_calls() would have it back. REQUIRES: parse_response() reads
  /// calls in it.
  std::string_view text_beside_calls(std::string_view text) const;

  /// Whether the format can write these messages and tools: roles in a place that it knows, as many calls in a message
  /// as it has room for. The render functions REQUIRE it.
  Status check_writable(std::span<const Message> messages, Tools tools = {}) const;

  /// Tokens that end an assistant message, the usual one first: the format's own, then also_stop_at()'s.
  std::vector<TokenId> stop_tokens() const;

  /// Further tokens that end a message, such as a model folder names; those that the tokenizer lacks are ignored.
  void also_stop_at(std::span<const TokenId> tokens);

  /// What control tokens in the text of messages are from now on: Tokens, for texts that are written as a format.
  void read_control_tokens_as(ControlTokens control) { in_contents_ = control; }

  const Tokenizer& tokenizer() const { return *tokenizer_; }

  /// What the format changes in messages that were written before: "drops the thinking of earlier assistant messages".
  /// Empty for the formats that are known here, which change nothing.
  virtual std::vector<std::string> rewriting() const { return {}; }

 protected:
  explicit ChatFamily(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  ControlTokens control_tokens_in_contents() const { return in_contents_; }

  /// The first of `names`, then those of the others that are added tokens of the tokenizer. REQUIRES: the first is.
  std::vector<TokenId> present_tokens(std::initializer_list<std::string_view> names) const;

 private:
  Result<std::vector<TokenId>> content_tokens(std::string_view text, TextBefore before) const;
  Result<TextBefore> before_response(std::string_view prefix) const;

  /// Everything up to the end of the assistant's head.
  virtual Status write_opening(LabelledText& text, std::span<const Message> messages, Tools tools) const = 0;
  virtual Status write_reply(LabelledText& text, std::span<const Message> messages, bool closed) const = 0;
  virtual std::vector<TokenId> own_stop_tokens() const = 0;
  /// How functions are called; null if the format has no way.
  virtual const ToolCallForm* call_form() const = 0;

  /// Why there is no call_form(), as the end of a sentence; empty if the format knows no functions at all.
  virtual std::string no_tools_because() const { return {}; }
  /// check_writable() beyond roles and whether there are calls at all.
  virtual Status check_places(std::span<const Message>, Tools) const { return Done{}; }

  /// What a policy of this format says around the content of a message: a blank, in some formats.
  virtual std::string_view before_speech() const { return {}; }
  virtual std::string_view after_speech() const { return {}; }
  /// The content of an assistant's message without a beginning that the head has already: "<think>\n".
  virtual std::string_view as_said(std::string_view content) const { return content; }
  /// Whether the assistant's head ends in an added token, not in text.
  virtual bool head_ends_in_token() const { return false; }

  void write_prefix(LabelledText& text, std::string_view prefix) const;

  const Tokenizer* tokenizer_;
  std::vector<TokenId> further_stops_;
  ControlTokens in_contents_ = ControlTokens::Text;
};

/// Start-up check: rendering turn by turn equals rendering at once, and decoding gives the text back. Says where not.
Status check_append_only(const ChatFamily& chat);

}  // namespace carnot
