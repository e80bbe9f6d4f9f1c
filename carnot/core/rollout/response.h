// rollout/response.h -- a response while it is being sampled: its tokens, their statistics, and the stop strings.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/core/engine/sampling.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

class Response {
 public:
  /// `tokenizer` and `stop_strings` must outlive the response.
  Response(const Tokenizer& tokenizer, const std::vector<std::string>& stop_strings);

  /// Adds a token. True if the text now holds a stop string; a token may carry text after it, which stays.
  bool push(const TokenDraw& draw);

  int size() const { return static_cast<int>(draws_.size()); }
  std::span<const TokenDraw> draws() const { return draws_; }
  const std::vector<TokenId>& tokens() const { return tokens_; }

 private:
  const std::vector<std::string>* stop_strings_;
  StreamingDecoder decoder_;
  std::vector<TokenDraw> draws_;
  std::vector<TokenId> tokens_;
  std::string tail_;  ///< as much of the text's end as a stop string can still begin in
  std::size_t longest_ = 0;
};

}  // namespace carnot
