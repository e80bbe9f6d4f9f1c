#include "carnot/core/text/streaming_decoder.h"

#include "carnot/core/base/utf8.h"

namespace carnot {

std::string StreamingDecoder::push(TokenId id) {
  waiting_ += tokenizer_->bytes_of(id);
  const std::size_t complete = waiting_.size() - unfinished_suffix(waiting_);
  std::string text = waiting_.substr(0, complete);
  waiting_.erase(0, complete);
  return text;
}

std::string StreamingDecoder::flush() { return std::exchange(waiting_, {}); }

}  // namespace carnot
