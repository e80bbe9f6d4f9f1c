// studies/response_samples.h -- many responses from one state: an estimate of the entropy over whole responses.
#pragma once

#include <span>
#include <vector>

#include "carnot/core/engine/engine.h"
#include "carnot/core/rollout/episode.h"

namespace carnot {

/// A whole response in one number and its length.
struct SampledResponse {
  double surprisal = 0;  ///< sum of its tokens' negative log-probabilities, nats
  int tokens = 0;
};

struct ResponseSampling {
  int count = 64;
  SamplingOptions sampling{};
  int max_context_tokens = 4096;
  DrawKey key{};  ///< sibling counts the responses
};

/// Responses after `context` as episodes end them: at a stop token, a stop string or the limit. `episode` is any of
/// the environment's. Needs the engine for itself.
std::vector<SampledResponse> sample_responses(Engine& engine, const Tokenizer& tokenizer, const Episode& episode,
                                              std::span<const TokenId> context, const ResponseSampling& options);

}  // namespace carnot
