// text/labelled_text.h -- text put together from parts of different kinds, tokenised as a whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/data/tokens.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

class LabelledText {
 public:
  /// `in_contents`: what control tokens in the text of messages are.
  explicit LabelledText(const Tokenizer& tokenizer, ControlTokens in_contents = ControlTokens::Text)
      : tokenizer_(&tokenizer), in_contents_(in_contents) {}

  /// Text of the format, where the kind is Template; of a message otherwise.
  void add(SpanKind kind, std::string_view text) {
    add(kind, text, kind == SpanKind::Template ? ControlTokens::Tokens : in_contents_);
  }

  /// Text of the format that counts as `kind`.
  void add_format(SpanKind kind, std::string_view text) { add(kind, text, ControlTokens::Tokens); }

  /// Text of a message that counts as `kind`.
  void add_content(SpanKind kind, std::string_view text) { add(kind, text, in_contents_); }

  /// The tokens of the whole text, as they are after `before`. One that straddles a border is of the kind where its
  /// first byte is. An error as of Tokenizer::try_encode().
  Result<SpannedTokens> tokenize(TextBefore before) const {
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

 private:
  struct Part {
    SpanKind kind = SpanKind::Template;
    std::size_t end = 0;
  };

  void add(SpanKind kind, std::string_view text, ControlTokens control) {
    if (text.empty()) return;
    const std::size_t begin = text_.size();
    // Normalised here, so that offsets count the bytes of the tokens.
    text_ += tokenizer_->normalize(text, control);
    if (control == ControlTokens::Text) contents_.push_back({.begin = begin, .end = text_.size()});
    parts_.push_back({.kind = kind, .end = text_.size()});
  }

  const Tokenizer* tokenizer_;
  ControlTokens in_contents_;
  std::string text_;
  std::vector<Part> parts_;
  std::vector<TextRange> contents_;  // where control tokens are text
};

}  // namespace carnot
