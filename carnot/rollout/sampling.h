// rollout/sampling.h -- one token from one row of logits, with the statistics of the distribution it came from.
//
// Sums run in double over a fixed order that depends on the vocabulary's size alone: neither batch nor threads can
// change a token or a digit. No LibTorch.
#pragma once

#include <span>

#include "carnot/base/fields.h"
#include "carnot/data/tokens.h"

namespace carnot {

struct SamplingOptions {
  double temperature = 1;  ///< 0: greedy
  double top_p = 1;        ///< 1: off
  int top_k = 0;           ///< 0: off

  void fields(FieldVisitor& visit);
};

/// Statistics are of softmax(logits / temperature) over the whole vocabulary, before top-k and top-p cut anything, in
/// nats. Greedy: of softmax(logits).
struct TokenDraw {
  TokenId token = 0;
  double log_prob = 0;
  double entropy = 0;
  double logsumexp = 0;  ///< of logits / temperature
};

/// The token whose share of the cumulative distribution covers `uniform` in [0, 1).
///
/// Uncut, tokens are lined up by id. With top-k and top-p, by logit, ties to the smaller id: the first top_k of them,
/// and of those, renormalised, the shortest run whose mass reaches top_p. Greedy: the largest logit, ties to the smaller id.
/// Logits of -inf have no mass. REQUIRES: a finite largest logit.
TokenDraw sample_token(std::span<const float> logits, const SamplingOptions& options, double uniform);

}  // namespace carnot
