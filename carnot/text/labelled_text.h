// text/labelled_text.h -- text put together from parts of different kinds, tokenised as a whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/data/tokens.h"
#include "carnot/text/tokenizer.h"

namespace carnot {

class LabelledText {
 public:
  explicit LabelledText(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  void add(SpanKind kind, std::string_view text);

  /// The tokens of the whole text, as they are behind `before`. One that straddles a border is of the kind where its
  /// first byte lies.
  SpannedTokens tokenize(TextBefore before) const;

 private:
  struct Part {
    SpanKind kind = SpanKind::Template;
    std::size_t end = 0;
  };

  const Tokenizer* tokenizer_;
  std::string text_;
  std::vector<Part> parts_;
};

}  // namespace carnot
