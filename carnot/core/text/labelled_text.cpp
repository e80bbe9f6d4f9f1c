#include "carnot/core/text/labelled_text.h"

namespace carnot {

void LabelledText::add(SpanKind kind, std::string_view text) {
  add(kind, text, kind == SpanKind::Template ? ControlTokens::Tokens : in_contents_);
}

void LabelledText::add(SpanKind kind, std::string_view text, ControlTokens control) {
  if (text.empty()) return;
  const std::size_t begin = text_.size();
  // Normalised here, so that offsets count the bytes of the tokens.
  text_ += tokenizer_->normalize(text, control);
  if (control == ControlTokens::Text) contents_.push_back({.begin = begin, .end = text_.size()});
  parts_.push_back({.kind = kind, .end = text_.size()});
}

Result<SpannedTokens> LabelledText::tokenize(TextBefore before) const {
  CARNOT_ASSIGN_OR_RETURN(auto tokens, tokenizer_->try_encode(text_, before, contents_));
  SpannedTokens result{.tokens = std::move(tokens)};
  std::size_t offset = 0;
  auto part = parts_.begin();
  for (const TokenId id : result.tokens) {
    const TextRange place = tokenizer_->place_of(id, text_, offset);
    while (place.begin >= part->end && part + 1 != parts_.end()) ++part;
    extend_spans(result.spans, part->kind, 1);
    offset = place.end;
  }
  return result;
}

}  // namespace carnot
