// rollout/answer_prompt.h -- a ground truth to be scored after a context: the text that leads up to an answer, and the
// answer's tokens (IGPO, arXiv:2510.14967).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// The text between a turn and the answer whose likelihood is measured after it (IGPO). Where the context has opened
/// the think tag itself, a leading "<think>" is left out. Its tokens belong to the context and do not count in the
/// mean; a trailing space is encoded with the answer.
struct AnswerLead {
  std::string text = "<think> Now there's enough information to answer </think> <answer> \\boxed{ ";
  std::string think_tag = "think";
};

class AnswerPrompt {
 public:
  /// Tokens of the answer are encoded alone, so that none straddles the lead. Errors are those of
  /// Tokenizer::try_encode().
  static Result<AnswerPrompt> of(const Tokenizer& tokenizer, const AnswerLead& lead, const std::string& answer);

  std::span<const TokenId> tokens() const { return tokens_; }

  /// What goes between a context and the answer. `end`: at least the last bytes_read() bytes of the context's text, or
  /// all of it.
  std::span<const TokenId> lead_after(const std::string& end) const;
  std::size_t bytes_read() const { return think_.size(); }

 private:
  AnswerPrompt() = default;

  std::vector<TokenId> lead_{};
  std::vector<TokenId> open_lead_{};  ///< where the context has opened the think tag
  std::vector<TokenId> tokens_{};
  std::string think_{};
};

/// The text of the last tokens: at least `size` bytes, or all of it.
std::string text_at_end(const Tokenizer& tokenizer, std::span<const TokenId> tokens, std::size_t size);

}  // namespace carnot
