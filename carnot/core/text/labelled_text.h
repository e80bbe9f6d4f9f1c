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
  void add(SpanKind kind, std::string_view text);

  /// Text of the format that counts as `kind`.
  void add_format(SpanKind kind, std::string_view text) { add(kind, text, ControlTokens::Tokens); }

  /// Text of a message that counts as `kind`.
  void add_content(SpanKind kind, std::string_view text) { add(kind, text, in_contents_); }

  /// The tokens of the whole text, as they are after `before`. One that straddles a border is of the kind where its
  /// first byte is. An error as of Tokenizer::try_encode().
  Result<SpannedTokens> tokenize(TextBefore before) const;

 private:
  struct Part {
    SpanKind kind = SpanKind::Template;
    std::size_t end = 0;
  };

  void add(SpanKind kind, std::string_view text, ControlTokens control);

  const Tokenizer* tokenizer_;
  ControlTokens in_contents_;
  std::string text_;
  std::vector<Part> parts_;
  std::vector<TextRange> contents_;  // where control tokens are text
};

}  // namespace carnot
