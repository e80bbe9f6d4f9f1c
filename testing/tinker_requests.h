// testing/tinker_requests.h -- random requests for Tinker's forward_backward, of token ids below 40.
#pragma once

#include "carnot/core/base/random.h"
#include "carnot/serving/tinker/wire.h"

namespace carnot::testing {

inline TinkerTensor tinker_tensor(std::vector<double> values) {
  return {.shape = {static_cast<std::int64_t>(values.size())}, .values = std::move(values)};
}

/// Sequences that begin alike, with random weights, advantages and log-probabilities.
inline ForwardBackwardRequest tinker_request(const std::string& loss, int data, std::uint64_t seed) {
  RandomStream random(seed);
  ForwardBackwardRequest request{.loss = loss};
  for (int d = 0; d < data; ++d) {
    TinkerDatum datum{.tokens = {3, 1, 4}};
    const int length = 4 + static_cast<int>(random.below(9));
    while (std::ssize(datum.tokens) < length) datum.tokens.push_back(static_cast<TokenId>(random.below(40)));
    std::vector<double> targets(datum.tokens.begin() + 1, datum.tokens.end()), weights, advantages, sampled;
    targets.push_back(static_cast<double>(random.below(40)));
    for (int i = 0; i < length; ++i) {
      weights.push_back(random.uniform());
      advantages.push_back(random.normal());
      sampled.push_back(-2 * random.uniform());
    }
    datum.inputs = {{"target_tokens", tinker_tensor(targets)},
                    {"weights", tinker_tensor(weights)},
                    {"advantages", tinker_tensor(advantages)},
                    {"logprobs", tinker_tensor(sampled)}};
    request.data.push_back(datum);
  }
  return request;
}

}  // namespace carnot::testing
