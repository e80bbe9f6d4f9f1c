// serving/text_stream.h -- sampled tokens to text as they come: cut at a stop string, never inside a character.
//
// Text is given out once it is certain: what could still become a stop string, and bytes of an unfinished character,
// wait. The stop string that is complete first in the bytes of the text cuts it, whatever tokens the text came in; of
// two that end together, the longer one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "carnot/core/text/tokenizer.h"

namespace carnot {

class TextStream {
 public:
  /// REQUIRES: no stop string is empty. `tokenizer` must outlive the stream.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop_strings);

  /// Text that is certain after this token. REQUIRES: not stopped.
  std::string push(TokenId token);

  /// What has waited, where nothing follows any more; empty if a stop string came.
  std::string finish();

  /// The stop string that came; it is not part of the text.
  const std::optional<std::string>& stop_string() const { return stopped_by_; }

 private:
  /// Text before the first complete stop string; nothing if none is complete.
  std::optional<std::string> cut();
  std::string certain();

  std::vector<std::string> stop_strings_;
  StreamingDecoder decoder_;
  std::string waiting_;
  std::optional<std::string> stopped_by_;
};

}  // namespace carnot
