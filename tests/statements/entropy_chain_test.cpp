// The chain of entropies behind AEM's proxy (arXiv:2605.00425, theorem 3.2.1 and appendix F.4), in Carnot's statistics
// of tokens: of a random policy over trajectories of two responses, every one of which is enumerated.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/nn/token_statistics.h"

namespace carnot {
namespace {

constexpr int kVocabulary = 3, kResponseTokens = 2, kPrefixes = 1 + 3 + 9 + 27;  // with room for one token more

/// A random distribution at every prefix of up to three tokens. Prefixes have numbers: 0 is the empty one, and that of
/// a prefix and one token more is next().
class RandomPolicy {
 public:
  explicit RandomPolicy(std::uint64_t seed) {
    RandomStream random(seed);
    at::Tensor logits_NV = at::empty({kPrefixes, kVocabulary}, at::kDouble);
    for (int i = 0; i < kPrefixes * kVocabulary; ++i) logits_NV.data_ptr<double>()[i] = 1.5 * random.normal();
    const at::Tensor targets_T = at::arange(kVocabulary, at::kLong).repeat({kPrefixes});
    statistics_ =
        token_statistics(logits_NV.repeat_interleave(kVocabulary, 0), at::eye(kVocabulary, at::kDouble), targets_T, {});
  }

  static int next(int prefix, int token) { return kVocabulary * prefix + 1 + token; }
  double log_prob(int prefix, int token) const { return at(statistics_.logprob_T, prefix, token); }
  double entropy(int prefix) const { return at(statistics_.entropy_T, prefix, 0); }

 private:
  static double at(const at::Tensor& values_T, int prefix, int token) {
    return values_T.const_data_ptr<double>()[kVocabulary * prefix + token];
  }

  TokenStatistics statistics_;
};

/// A way to continue.
struct Way {
  int end = 0;           ///< prefix
  double log_prob = 0;   ///< of its tokens
  double entropies = 0;  ///< sum over its tokens
};

std::vector<Way> ways_from(const RandomPolicy& policy, int prefix, int tokens) {
  std::vector<Way> ways = {{.end = prefix}};
  for (; tokens > 0; --tokens) {
    std::vector<Way> longer;
    for (const Way& way : ways)
      for (int token = 0; token < kVocabulary; ++token)
        longer.push_back({.end = RandomPolicy::next(way.end, token),
                          .log_prob = way.log_prob + policy.log_prob(way.end, token),
                          .entropies = way.entropies + policy.entropy(way.end)});
    ways = std::move(longer);
  }
  return ways;
}

double entropy_of(const std::vector<Way>& ways) {
  double entropy = 0;
  for (const Way& way : ways) entropy -= std::exp(way.log_prob) * way.log_prob;
  return entropy;
}

double response_entropy(const RandomPolicy& policy, int prefix) {
  return entropy_of(ways_from(policy, prefix, kResponseTokens));
}

TEST(EntropyChain, OfResponsesIsTheExpectedSumOfTokenEntropies) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomPolicy policy(seed);
    for (const Way& before : ways_from(policy, 0, kResponseTokens)) {
      double expected = 0;
      for (const Way& way : ways_from(policy, before.end, kResponseTokens))
        expected += std::exp(way.log_prob) * way.entropies;
      EXPECT_NEAR(response_entropy(policy, before.end), expected, 1e-12);
    }
  }
}

TEST(EntropyChain, OfATrajectoryIsTheExpectedSumOfItsResponses) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomPolicy policy(seed);
    double expected = response_entropy(policy, 0);
    for (const Way& way : ways_from(policy, 0, kResponseTokens))
      expected += std::exp(way.log_prob) * response_entropy(policy, way.end);
    EXPECT_NEAR(entropy_of(ways_from(policy, 0, 2 * kResponseTokens)), expected, 1e-12);
  }
}

TEST(EntropyChain, SurprisalDiffersFromTheEntropySumByZeroOnAverage) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomPolicy policy(seed);
    double spread = 0;
    for (int prefix = 0; prefix < kPrefixes; ++prefix) {
      double mean = 0;
      for (const Way& way : ways_from(policy, prefix, 1)) {
        const double difference = -way.log_prob - way.entropies;
        mean += std::exp(way.log_prob) * difference;
        spread += std::exp(way.log_prob) * difference * difference;
      }
      EXPECT_NEAR(mean, 0, 1e-12);
    }
    EXPECT_GT(spread, 1);
  }
}

}  // namespace
}  // namespace carnot
