// text/chat.h -- messages to tokens with spans; a conversation only ever grows at its end.
//
// A trajectory is its token ids. What the policy sampled stays as sampled; what the environment says is rendered
// and appended. No history is rendered twice.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/base/result.h"
#include "carnot/data/tokens.h"
#include "carnot/text/tokenizer.h"

namespace carnot {

struct Message {
  std::string role{};  ///< "system", "user", "assistant", "tool"
  std::string content{};
};

/// One family's way to write a conversation ("qwen2.5", ...).
class ChatFamily {
 public:
  virtual ~ChatFamily() = default;

  virtual std::string_view name() const = 0;

  /// The opening: all messages, then the head of the assistant's message, then `prefix` (for example "<think>").
  /// Scaffolding is Template; contents and prefix are Prompt.
  virtual SpannedTokens render_opening(std::span<const Message> messages, std::string_view prefix) const = 0;

  /// What follows an assistant message that the policy ended (`closed`: its last token was a stop token): the
  /// messages, the head of the next assistant message, `prefix`. Contents are Observation.
  virtual SpannedTokens render_reply(std::span<const Message> messages, std::string_view prefix, bool closed) const = 0;

  /// Text put inline into the running assistant message (a tool's result); all of it Observation.
  SpannedTokens render_inline(std::string_view text) const;

  /// Tokens that end an assistant message, the usual one first.
  virtual std::vector<TokenId> stop_tokens() const = 0;

  const Tokenizer& tokenizer() const { return *tokenizer_; }

 protected:
  explicit ChatFamily(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

 private:
  const Tokenizer* tokenizer_;
};

/// The family of that name over a tokenizer, which must outlive it. An unknown name is answered with the known ones;
/// a tokenizer that lacks the family's tokens is refused with the missing ones named.
Result<std::unique_ptr<ChatFamily>> make_chat_family(std::string_view name, const Tokenizer& tokenizer);

std::vector<std::string> chat_family_names();

/// Start-up check: rendering turn by turn equals rendering at once, and decoding gives the text back. Says where not.
Status check_append_only(const ChatFamily& chat);

}  // namespace carnot
