// reference/decoder.h -- the slow reference of the engine: computes the whole prefix again for every token, one
// sequence at a time.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/data/tokens.h"

namespace carnot::reference {

struct Draw {
  TokenId token = 0;
  double log_prob = 0;
  double entropy = 0;
  double logsumexp = 0;
};

struct DecodeRequest {
  std::vector<TokenId> prompt{};
  DrawKey key{};
  double temperature = 1;  ///< 0: greedy
  int top_k = 0;
  double top_p = 1;
  int max_tokens = 1;
  std::vector<TokenId> stop_tokens{};
};

/// One token by the definition: softmax, sort, cumulative sums.
Draw draw(const std::vector<double>& logits, const DecodeRequest& request, double uniform);

/// `next_logits` returns the logits after a prefix.
std::vector<Draw> decode(const DecodeRequest& request,
                         const std::function<std::vector<double>(std::span<const TokenId>)>& next_logits);

}  // namespace carnot::reference
