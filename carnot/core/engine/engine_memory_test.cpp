// Blocks and states of the engine's cache: shared, scarce and given back.
#include <gtest/gtest.h>

#include "carnot/core/base/check.h"
#include "testing/engine_draws.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the requests of this test

class EngineMemory : public CacheKinds {};
INSTANTIATE_TEST_SUITE_P(Caches, EngineMemory, cache_kinds(), cache_kind_name);

TEST_P(EngineMemory, SequencesThatBeginAlikeShareWholeBlocksAndSampleWhatTheyWouldAlone) {
  constexpr int kCommon = 45, kOwn = 6;
  for (const int num_blocks : {400, 12}) {
    for (const int max_batch_tokens : {7, 64, 1000}) {
      HashRunner runner(kHashVocabulary, with_blocks(num_blocks));
      Engine engine(runner, {.max_batch_tokens = max_batch_tokens});
      std::map<SequenceId, std::vector<reference::Draw>> expected;
      std::int64_t sampled = 0;
      for (std::uint64_t i = 0; i < 10; ++i) {
        std::vector<TokenId> prompt = prompt_of(kCommon, 1);
        for (const TokenId token : prompt_of(kOwn, 50 + i)) prompt.push_back(token);
        const SequenceId sequence = engine.start(prompt);
        engine.sample(sequence, request_of(i, 20));
        expected[sequence] = slow_draws(runner, prompt, request_of(i, 20));
        sampled += std::ssize(expected[sequence]);
      }
      const auto draws = run(engine);
      for (const auto& [sequence, slow] : expected) expect_same(draws.at(sequence), slow);
      if (num_blocks < 400 || GetParam().has_states() || has_few_window_blocks()) continue;
      // The last token of a prompt is computed where it samples; a response's last token never is.
      const int shared = kCommon / kBlockTokens * kBlockTokens;
      EXPECT_EQ(engine.metrics().rows, kCommon + kOwn + 9 * (kCommon - shared + kOwn) + sampled - 10);
    }
  }
}

TEST_P(EngineMemory, APromptThatAnotherHasComputedWholeIsPrefilledAloneAndSamplesTheSame) {
  for (const int length : {16, 17, 18, 32, 33, 34}) {
    HashRunner runner(kHashVocabulary, with_blocks(100));
    Engine engine(runner, {});
    const std::vector<TokenId> prompt = prompt_of(length, 3);
    const SequenceId idle = engine.start(prompt);
    (void)run(engine);
    ASSERT_TRUE(engine.prefilled(idle));
    const SequenceId later = engine.start(prompt);
    const std::int64_t before = engine.metrics().rows;
    (void)run(engine);
    ASSERT_TRUE(engine.prefilled(later));
    EXPECT_LE(engine.metrics().rows - before,
              GetParam().has_states() || has_few_window_blocks() ? length - 1 : kBlockTokens);
    engine.sample(later, request_of(1, 20));
    expect_same(run(engine).at(later), slow_draws(runner, prompt, request_of(1, 20)));
  }
}

// A pool far too small for all: sequences wait, idle and younger ones are evicted, and every token stays the same.
TEST_P(EngineMemory, FinishesEverySequenceInACacheThatHoldsOnlyAFew) {
  HashRunner runner(kHashVocabulary, with_blocks(12));
  Engine engine(runner, {.max_batch_tokens = 64});
  const std::vector<TokenId> prompt = prompt_of(40, 5);
  const SequenceId root = engine.start(prompt);
  run(engine);
  std::map<SequenceId, std::uint64_t> siblings;
  for (std::uint64_t i = 0; i < 16; ++i) {
    const SequenceId sibling = engine.fork(root, 40);
    SampleRequest request = request_of(i, 70);
    request.stop_tokens.clear();
    engine.sample(sibling, request);
    siblings[sibling] = i;
  }
  std::map<SequenceId, std::vector<TokenDraw>> draws;
  std::size_t finished = 0;
  while (engine.has_work()) {
    for (const SampledToken& sampled : engine.step().tokens) {
      draws[sampled.sequence].push_back(sampled.draw);
      if (sampled.end == SampleEnd::GoesOn) continue;
      ++finished;
      if (finished % 2 == 0) engine.release(sampled.sequence);  // the others stay, idle
    }
  }
  EXPECT_EQ(finished, 16u);
  EXPECT_GT(engine.metrics().evictions, 0);
  for (const auto& [sibling, i] : siblings) {
    SampleRequest request = request_of(i, 70);
    request.stop_tokens.clear();
    expect_same(draws.at(sibling), slow_draws(runner, prompt, request));
  }
}

// The older sequence is idle as soon as its rows are scheduled, and the younger one needs a block in the same step.
TEST_P(EngineMemory, TakesNothingFromASequenceThatHasRowsInTheSameStep) {
  HashRunner runner(kHashVocabulary, with_blocks(3));
  Engine engine(runner, {});
  const std::vector<TokenId> prompt = prompt_of(2 * kBlockTokens, 2);
  const SequenceId older = engine.start(prompt_of(1, 1));
  const SequenceId younger = engine.start(prompt);
  SampleRequest request = request_of(0, 9);
  request.stop_tokens.clear();
  engine.sample(younger, request);
  std::vector<TokenDraw> draws{engine.step().tokens.at(0).draw};
  engine.append(older, prompt_of(kBlockTokens, 3));
  EXPECT_TRUE(engine.step().tokens.empty()) << "the younger one waits";
  const std::vector<TokenDraw> rest = run(engine)[younger];
  draws.insert(draws.end(), rest.begin(), rest.end());
  expect_same(draws, slow_draws(runner, prompt, request));
}

TEST_P(EngineMemory, DropsTheRequestOfASequenceThatAloneDoesNotFit) {
  HashRunner runner(kHashVocabulary, with_blocks(2));
  Engine engine(runner, {});
  const SequenceId sequence = engine.start(prompt_of(2 * kBlockTokens - 1, 1));
  SampleRequest request = request_of(0, 9);
  request.stop_tokens.clear();
  engine.sample(sequence, request);
  EXPECT_EQ(engine.step().tokens.size(), 1u);
  EXPECT_EQ(engine.step().tokens.size(), 1u) << "32 tokens fill two blocks; the last sampled one needs no place yet";
  const StepResult& result = engine.step();
  EXPECT_TRUE(result.tokens.empty());
  EXPECT_EQ(result.too_long, std::vector<SequenceId>{sequence});
  EXPECT_FALSE(engine.has_work());
}

TEST_P(EngineMemory, GivesEveryBlockAndStateBack) {
  HashRunner runner(kHashVocabulary, with_blocks(30));
  Engine engine(runner, {});
  const SequenceId root = engine.start(prompt_of(20, 1));
  run(engine);
  const SequenceId child = engine.fork(root, 20);
  engine.sample(child, request_of(0, 30));
  run(engine);
  engine.release(root);
  engine.release(child);
  EXPECT_EQ(engine.free_blocks(), 30);
  EXPECT_EQ(engine.free_states(), GetParam().states);
  EXPECT_EQ(engine.free_window_blocks(), GetParam().window_blocks);
  EXPECT_THROW(engine.tokens(child), CheckError);
}

TEST(EngineWithStates, ComputesAForkFromItsStartUnlessItIsOfAllThatIsComputed) {
  HashRunner runner(kHashVocabulary, 100, 20);
  Engine engine(runner, {});
  const std::vector<TokenId> prompt = prompt_of(40, 1);
  const SequenceId root = engine.start(prompt);
  (void)run(engine);
  for (const int length : {40, 39, 33, 1}) {
    const SequenceId fork = engine.fork(root, length);
    engine.sample(fork, request_of(1, 1));
    const std::int64_t before = engine.metrics().rows;
    const int copies = runner.state_copies;
    expect_same(run(engine).at(fork), slow_draws(runner, {prompt.begin(), prompt.begin() + length}, request_of(1, 1)));
    EXPECT_EQ(engine.metrics().rows - before, length == 40 ? 1 : length);
    EXPECT_EQ(runner.state_copies - copies, length == 40 ? 1 : 0);
    engine.release(fork);
  }
}

TEST(EngineWithStates, SharesAllThatAnIdleSequenceHasComputedOrNothing) {
  HashRunner runner(kHashVocabulary, 100, 20);
  Engine engine(runner, {});
  const std::vector<TokenId> prompt = prompt_of(41, 1);
  const SequenceId idle = engine.start(prompt), shorter = engine.start(std::span(prompt).first(36));
  (void)run(engine);
  for (const int common : {41, 40, 39, 36, 35, 34}) {
    std::vector<TokenId> tokens(prompt.begin(), prompt.begin() + common);
    const TokenId other = common < 41 ? (prompt[static_cast<std::size_t>(common)] + 1) % kHashVocabulary : 0;
    tokens.insert(tokens.end(), 3, other);
    const SequenceId sequence = engine.start(tokens);
    engine.sample(sequence, request_of(2, 1));
    const std::int64_t before = engine.metrics().rows;
    expect_same(run(engine).at(sequence), slow_draws(runner, tokens, request_of(2, 1)));
    const int shared = common >= 40 ? 40 : common >= 35 ? 35 : 0;
    EXPECT_EQ(engine.metrics().rows - before, common + 3 - shared) << common << " common tokens";
    engine.release(sequence);
  }
  engine.release(idle);
  engine.release(shorter);
  EXPECT_EQ(engine.free_states(), 20);
}

// The older one's state is advanced by the same forward that the younger one starts in.
TEST(EngineWithStates, SharesNothingOfASequenceThatHasRowsInTheSameStep) {
  HashRunner runner(kHashVocabulary, 100, 20);
  Engine engine(runner, {});
  std::vector<TokenId> prompt = prompt_of(20, 1);
  const SequenceId older = engine.start(prompt);
  (void)run(engine);
  const std::vector<TokenId> more = prompt_of(9, 2);
  engine.append(older, more);
  prompt.insert(prompt.end(), more.begin(), more.end());
  const SequenceId younger = engine.start(prompt);
  engine.sample(older, request_of(0, 12));
  engine.sample(younger, request_of(1, 12));
  const auto draws = run(engine);
  expect_same(draws.at(older), slow_draws(runner, prompt, request_of(0, 12)));
  expect_same(draws.at(younger), slow_draws(runner, prompt, request_of(1, 12)));
}

TEST(EngineWithStates, ForgetsStatesAndComputesThemAgain) {
  HashRunner runner(kHashVocabulary, 100, 5);
  Engine engine(runner, {});
  const std::vector<TokenId> prompt = prompt_of(20, 1);
  const SequenceId sequence = engine.start(prompt);
  engine.sample(sequence, request_of(0, 12));
  std::vector<TokenDraw> draws{engine.step().tokens.at(0).draw};
  engine.forget_computed();
  EXPECT_EQ(engine.free_states(), 5);
  const std::vector<TokenDraw> rest = run(engine)[sequence];
  draws.insert(draws.end(), rest.begin(), rest.end());
  expect_same(draws, slow_draws(runner, prompt, request_of(0, 12)));
}

}  // namespace
}  // namespace carnot
