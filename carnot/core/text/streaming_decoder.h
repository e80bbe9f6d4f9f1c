// text/streaming_decoder.h -- tokens to text while they arrive, without ever splitting a UTF-8 character.
#pragma once

#include <string>

#include "carnot/core/data/tokens.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// Turns a stream of tokens into text without ever splitting a UTF-8 character.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  /// Text that is complete after this token; bytes of an unfinished character wait for the next one.
  std::string push(TokenId id);
  /// The bytes still waiting, as they are.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  std::string waiting_;
};

}  // namespace carnot
