#include "carnot/core/rollout/answer_prompt.h"

#include <algorithm>
#include <utility>

namespace carnot {

Result<AnswerPrompt> AnswerPrompt::of(const Tokenizer& tokenizer, const AnswerLead& lead, const std::string& answer) {
  AnswerPrompt prompt;
  prompt.think_ = "<" + lead.think_tag + ">";
  // Byte-level BPE encodes a space and the word after it as one token: the space belongs to the answer.
  const bool blank = lead.text.ends_with(' ');
  const std::string before = blank ? lead.text.substr(0, lead.text.size() - 1) : lead.text;
  prompt.lead_ = tokenizer.encode(before);
  prompt.open_lead_ =
      before.starts_with(prompt.think_) ? tokenizer.encode(before.substr(prompt.think_.size())) : prompt.lead_;
  CARNOT_ASSIGN_OR_RETURN(auto tokens, tokenizer.try_encode_content(blank ? " " + answer : answer));
  prompt.tokens_ = std::move(tokens);
  return prompt;
}

std::span<const TokenId> AnswerPrompt::lead_after(const std::string& end) const {
  return end.ends_with(think_) ? open_lead_ : lead_;
}

std::string text_at_end(const Tokenizer& tokenizer, std::span<const TokenId> tokens, std::size_t size) {
  std::string text;
  for (std::size_t count = std::max<std::size_t>(1, size); text.size() < size; count *= 2) {
    text = tokenizer.decode(tokens.last(std::min(count, tokens.size())));
    if (count >= tokens.size()) break;
  }
  return text;
}

}  // namespace carnot
