#include "carnot/text/labelled_text.h"

namespace carnot {

void LabelledText::add(SpanKind kind, std::string_view text) {
  if (text.empty()) return;
  // Normalised here, so that offsets count the bytes that the tokens stand for.
  text_ += tokenizer_->normalize(text);
  parts_.push_back({.kind = kind, .end = text_.size()});
}

SpannedTokens LabelledText::tokenize() const {
  SpannedTokens result{.tokens = tokenizer_->encode(text_)};
  std::size_t offset = 0;
  auto part = parts_.begin();
  for (const TokenId id : result.tokens) {
    while (offset >= part->end && part + 1 != parts_.end()) ++part;
    extend_spans(result.spans, part->kind, 1);
    offset += tokenizer_->bytes_of(id).size();
  }
  return result;
}

}  // namespace carnot
