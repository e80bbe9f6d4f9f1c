// testing/engine_draws.h -- requests to an engine under the hash policy, and what a slow decoder draws for them. Needs
// LibTorch.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "carnot/core/engine/engine.h"
#include "reference/decoder.h"
#include "testing/hash_runner.h"

namespace carnot::testing {

inline constexpr int kHashVocabulary = 40;

/// Tests of an engine whose cache has no states and window blocks, few, or enough.
class CacheKinds : public ::testing::TestWithParam<CacheSize> {
 protected:
  static CacheSize with_blocks(int blocks) {
    CacheSize size = GetParam();
    size.blocks = blocks;
    return size;
  }
  static bool has_few_window_blocks() { return GetParam().has_window() && GetParam().window_blocks < 100; }
};

inline auto cache_kinds() {
  return ::testing::Values(CacheSize{}, CacheSize{.states = 1}, CacheSize{.states = 3}, CacheSize{.states = 100},
                           CacheSize{.window_blocks = 100, .window = 20}, CacheSize{.window_blocks = 5, .window = 20},
                           CacheSize{.window_blocks = 4, .window = 1},
                           CacheSize{.states = 3, .window_blocks = 7, .window = 30});
}

inline std::string cache_kind_name(const ::testing::TestParamInfo<CacheSize>& info) {
  const CacheSize& size = info.param;
  return "States" + std::to_string(size.states) + "WindowBlocks" + std::to_string(size.window_blocks) + "Of" +
         std::to_string(size.window);
}

inline std::vector<TokenId> prompt_of(int length, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<TokenId> tokens;
  for (int i = 0; i < length; ++i) tokens.push_back(static_cast<TokenId>(random.below(kHashVocabulary)));
  return tokens;
}

inline SampleRequest request_of(std::uint64_t sibling, int max_tokens) {
  return {.key = {.seed = 11, .sibling = sibling}, .max_tokens = max_tokens, .stop_tokens = {7}};
}

/// Steps until nothing is left to do; the draws of every sequence, in order.
inline std::map<SequenceId, std::vector<TokenDraw>> run(Engine& engine) {
  std::map<SequenceId, std::vector<TokenDraw>> draws;
  while (engine.has_work())
    for (const SampledToken& sampled : engine.step().tokens) draws[sampled.sequence].push_back(sampled.draw);
  return draws;
}

inline std::vector<reference::Draw> slow_draws(const HashRunner& runner, const std::vector<TokenId>& prompt,
                                               const SampleRequest& request) {
  return reference::decode({.prompt = prompt,
                            .key = request.key,
                            .temperature = request.sampling.temperature,
                            .top_k = request.sampling.top_k,
                            .top_p = request.sampling.top_p,
                            .max_tokens = request.max_tokens,
                            .stop_tokens = request.stop_tokens},
                           [&](std::span<const TokenId> prefix) { return runner.logits_behind(prefix); });
}

inline void expect_same(const std::vector<TokenDraw>& draws, const std::vector<reference::Draw>& expected) {
  ASSERT_EQ(draws.size(), expected.size());
  for (std::size_t i = 0; i < draws.size(); ++i) {
    ASSERT_EQ(draws[i].token, expected[i].token) << "token " << i;
    EXPECT_NEAR(draws[i].log_prob, expected[i].log_prob, 2e-5);
    EXPECT_NEAR(draws[i].entropy, expected[i].entropy, 2e-5);
    EXPECT_NEAR(draws[i].logsumexp, expected[i].logsumexp, 2e-5);
  }
}

}  // namespace carnot::testing
