#include "carnot/core/engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "carnot/core/base/check.h"
#include "carnot/core/base/thread_pool.h"
#include "testing/engine_draws.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the requests of this test

class EngineCaches : public CacheKinds {};
INSTANTIATE_TEST_SUITE_P(Caches, EngineCaches, cache_kinds(), cache_kind_name);

double log_prob_behind(const HashRunner& runner, std::span<const TokenId> prefix, TokenId token, double temperature) {
  const auto logits = runner.logits_behind(prefix);
  double sum = 0;
  for (const auto logit : logits) sum += std::exp(static_cast<double>(logit) / temperature);
  return static_cast<double>(logits[static_cast<std::size_t>(token)]) / temperature - std::log(sum);
}

TEST_P(EngineCaches, EqualsADecoderThatRecomputesThePrefixForEveryToken) {
  for (const int max_batch_tokens : {1, 7, 64, 1000}) {
    HashRunner runner(kHashVocabulary, with_blocks(400));
    Engine engine(runner, {.max_batch_tokens = max_batch_tokens});
    std::map<SequenceId, std::vector<reference::Draw>> expected;
    for (std::uint64_t i = 0; i < 12; ++i) {
      const std::vector<TokenId> prompt = prompt_of(1 + static_cast<int>(i) * 5, i);
      SampleRequest request = request_of(i, 60);
      if (i % 3 == 1) request.sampling = {.temperature = 0.8, .top_p = 0.9, .top_k = 10};
      if (i % 3 == 2) request.sampling.temperature = 0;
      const SequenceId sequence = engine.start(prompt);
      engine.sample(sequence, request);
      expected[sequence] = slow_draws(runner, prompt, request);
    }
    const auto draws = run(engine);
    for (const auto& [sequence, slow] : expected) expect_same(draws.at(sequence), slow);
    EXPECT_LE(runner.largest_batch, max_batch_tokens);
  }
}

// Answers after prefixes of a sequence while others decode, in small caches, too.
TEST_P(EngineCaches, AScoredAnswerHasTheLogProbabilitiesOfADecoderThatRecomputesThePrefix) {
  for (const int num_blocks : {400, 24}) {
    for (const int max_batch_tokens : {1, 9, 200}) {
      HashRunner runner(kHashVocabulary, with_blocks(num_blocks));
      Engine engine(runner, {.max_batch_tokens = max_batch_tokens});
      std::map<SequenceId, std::vector<double>> expected;
      const std::vector<TokenId> prompt = prompt_of(70, 1);
      const SequenceId parent = engine.start(prompt);
      engine.sample(parent, request_of(1, 40));
      engine.sample(engine.start(prompt_of(50, 2)), request_of(2, 90));
      std::uint64_t asked = 0;
      while (engine.has_work()) {
        const StepResult& result = engine.step();
        for (const ScoredAnswer& scored : result.scores) {
          const std::vector<double>& wanted = expected.at(scored.sequence);
          ASSERT_EQ(scored.log_probs.size(), wanted.size());
          for (std::size_t k = 0; k < wanted.size(); ++k) EXPECT_NEAR(scored.log_probs[k], wanted[k], 2e-5);
          expected.erase(scored.sequence);
        }
        if (asked >= 12) continue;
        const auto own = engine.tokens(parent);
        const int shared = 1 + static_cast<int>(asked * 7 % own.size());
        const AnswerRequest request{.lead = prompt_of(static_cast<int>(asked % 3) * 5, 30 + asked),
                                    .answer = prompt_of(1 + static_cast<int>(asked % 4) * 6, 60 + asked),
                                    .temperature = asked % 2 == 0 ? 1 : 0.7};
        std::vector<TokenId> context(own.begin(), own.begin() + shared);
        context.insert(context.end(), request.lead.begin(), request.lead.end());
        std::vector<double> log_probs;
        for (const TokenId token : request.answer) {
          log_probs.push_back(log_prob_behind(runner, context, token, request.temperature));
          context.push_back(token);
        }
        const SequenceId fork = engine.score(parent, shared, request);
        ASSERT_FALSE(expected.contains(fork));
        expected[fork] = std::move(log_probs);
        ++asked;
      }
      EXPECT_EQ(asked, 12u);
      EXPECT_TRUE(expected.empty());
    }
  }
}

TEST_P(EngineCaches, AnAnswerThatDoesNotFitIsSaidToHaveNoNumbersAndOneThatIsReleasedIsGone) {
  HashRunner runner(kHashVocabulary, with_blocks(4));
  Engine engine(runner, {});
  const SequenceId parent = engine.start(prompt_of(20, 1));
  (void)engine.score(parent, 20, {.answer = prompt_of(60, 2)});
  const SequenceId released = engine.score(parent, 20, {.answer = prompt_of(4, 3)});
  engine.release(released);
  std::vector<ScoredAnswer> scores;
  while (engine.has_work())
    for (const ScoredAnswer& scored : engine.step().scores) scores.push_back(scored);
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_TRUE(scores[0].log_probs.empty());
  engine.release(parent);
  EXPECT_EQ(engine.free_blocks(), 4);
  EXPECT_EQ(engine.free_states(), GetParam().states);
}

TEST_P(EngineCaches, AForkedSequenceSamplesWhatAFreshOneWould) {
  HashRunner runner(kHashVocabulary, with_blocks(200));
  Engine engine(runner, {});
  const std::vector<TokenId> prompt = prompt_of(37, 1);
  const SequenceId root = engine.start(prompt);
  run(engine);
  const std::int64_t prefilled_rows = engine.metrics().rows;
  EXPECT_EQ(prefilled_rows, 36) << "the last token waits for whoever samples";
  std::vector<SequenceId> siblings;
  for (std::uint64_t i = 0; i < 6; ++i) {
    siblings.push_back(engine.fork(root, 37));
    engine.sample(siblings.back(), request_of(i, 30));
  }
  const auto draws = run(engine);
  std::int64_t sampled = 0;
  for (std::uint64_t i = 0; i < 6; ++i) {
    expect_same(draws.at(siblings[i]), slow_draws(runner, prompt, request_of(i, 30)));
    sampled += static_cast<std::int64_t>(draws.at(siblings[i]).size());
  }
  if (GetParam().states == 1 || GetParam().states == 3 || has_few_window_blocks()) return;
  EXPECT_EQ(engine.metrics().rows - prefilled_rows, sampled) << "nothing of the prompt is computed again";
  EXPECT_EQ(runner.copies, 6) << "each sibling copies the prompt's last block, the root keeps its own";
  EXPECT_EQ(runner.state_copies, GetParam().has_states() ? 6 : 0) << "and likewise its state";
}

TEST_P(EngineCaches, ASiblingMayForkAnywhereInsideAnotherAndBothGoOn) {
  HashRunner runner(kHashVocabulary, with_blocks(200));
  Engine engine(runner, {});
  const std::vector<TokenId> prompt = prompt_of(10, 3);
  const SequenceId first = engine.start(prompt);
  SampleRequest whole = request_of(0, 50);
  whole.stop_tokens.clear();
  engine.sample(first, whole);
  for (int i = 0; i < 24; ++i) engine.step();
  const auto so_far = engine.tokens(first);
  std::map<SequenceId, std::vector<TokenId>> prefixes;
  for (const int length : {1, 9, 16, 17, static_cast<int>(so_far.size())}) {
    const std::vector<TokenId> prefix(so_far.begin(), so_far.begin() + length);
    const SequenceId branch = engine.fork(first, length);
    engine.sample(branch, request_of(static_cast<std::uint64_t>(length), 25));
    prefixes[branch] = prefix;
  }
  run(engine);
  for (const auto& [branch, prefix] : prefixes) {
    const auto expected = slow_draws(runner, prefix, request_of(prefix.size(), 25));
    const auto tokens = engine.tokens(branch);
    ASSERT_EQ(tokens.size(), prefix.size() + expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(tokens[prefix.size() + i], expected[i].token);
  }
  const auto expected = slow_draws(runner, prompt, whole);
  const auto tokens = engine.tokens(first);
  ASSERT_EQ(tokens.size(), prompt.size() + 50);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(tokens[prompt.size() + i], expected[i].token);
}

TEST_P(EngineCaches, ContinuesBehindAppendedTokensAsIfTheyHadBeenInThePrompt) {
  HashRunner runner(kHashVocabulary, with_blocks(100));
  Engine engine(runner, {.max_batch_tokens = 5});
  std::vector<TokenId> context = prompt_of(21, 8);
  const SequenceId sequence = engine.start(context);
  for (std::uint64_t turn = 0; turn < 4; ++turn) {
    SampleRequest request = request_of(0, 9);
    request.key.turn = turn;
    const auto expected = slow_draws(runner, context, request);
    engine.sample(sequence, request);
    expect_same(run(engine)[sequence], expected);
    for (const reference::Draw& draw : expected) context.push_back(draw.token);
    const std::vector<TokenId> observation = prompt_of(13, 100 + turn);
    context.insert(context.end(), observation.begin(), observation.end());
    engine.append(sequence, observation);
  }
}

TEST_P(EngineCaches, ATurnSampledInTwoRequestsEqualsOneRequest) {
  HashRunner runner(kHashVocabulary, with_blocks(100));
  Engine engine(runner, {});
  const std::vector<TokenId> prompt = prompt_of(5, 2);
  SampleRequest request = request_of(4, 20);
  request.stop_tokens.clear();
  const auto expected = slow_draws(runner, prompt, request);
  const SequenceId sequence = engine.start(prompt);
  request.max_tokens = 6;
  engine.sample(sequence, request);
  auto draws = run(engine)[sequence];
  request.key.position = 6;
  request.max_tokens = 14;
  engine.sample(sequence, request);
  const auto rest = run(engine)[sequence];
  draws.insert(draws.end(), rest.begin(), rest.end());
  expect_same(draws, expected);
}

TEST(Engine, SaysHowARequestEnded) {
  HashRunner runner(kHashVocabulary, 10);
  Engine engine(runner, {});
  const SequenceId sequence = engine.start(prompt_of(3, 1));
  SampleRequest request = request_of(0, 2);
  request.stop_tokens.clear();
  engine.sample(sequence, request);
  EXPECT_EQ(engine.step().tokens.at(0).end, SampleEnd::GoesOn);
  EXPECT_EQ(engine.step().tokens.at(0).end, SampleEnd::MaxTokens);
  for (TokenId token = 0; token < kHashVocabulary; ++token) request.stop_tokens.push_back(token);
  engine.sample(sequence, request);
  EXPECT_EQ(engine.step().tokens.at(0).end, SampleEnd::StopToken);
  EXPECT_FALSE(engine.has_work());
}

TEST(Engine, StopsARequestFromOutsideAndKeepsWhatWasSampled) {
  HashRunner runner(kHashVocabulary, 10);
  Engine engine(runner, {});
  const SequenceId sequence = engine.start(prompt_of(3, 1));
  engine.sample(sequence, request_of(0, 9));
  engine.step();
  engine.stop_sampling(sequence);
  EXPECT_FALSE(engine.has_work());
  EXPECT_EQ(engine.tokens(sequence).size(), 4u);
}

TEST_P(EngineCaches, TokensDoNotDependOnBatchSizeStripsOrThreads) {
  std::vector<std::vector<TokenId>> first;
  struct Setting {
    int max_batch_tokens, vocabulary_strip_megabytes, threads;
  };
  for (const Setting& setting : {Setting{1000, 64, 1}, Setting{1, 64, 1}, Setting{13, 1, 2}, Setting{200, 1, 3}}) {
    set_num_threads(setting.threads);
    HashRunner runner(kHashVocabulary, with_blocks(300));
    Engine engine(
        runner, {.max_batch_tokens = setting.max_batch_tokens, .logits_megabytes = setting.vocabulary_strip_megabytes});
    std::vector<SequenceId> sequences;
    for (std::uint64_t i = 0; i < 9; ++i) {
      sequences.push_back(engine.start(prompt_of(4 + static_cast<int>(i) * 3, i)));
      engine.sample(sequences.back(), request_of(i, 40));
    }
    run(engine);
    std::vector<std::vector<TokenId>> tokens;
    for (SequenceId sequence : sequences)
      tokens.emplace_back(engine.tokens(sequence).begin(), engine.tokens(sequence).end());
    if (first.empty()) first = tokens;
    EXPECT_EQ(tokens, first);
  }
  set_num_threads(1);
}

TEST(Engine, RefusesIdsThatTheModelDoesNotKnow) {
  HashRunner runner(kHashVocabulary, 2);
  Engine engine(runner, {});
  EXPECT_THROW(engine.start(std::vector<TokenId>{1, kHashVocabulary}), CheckError);
  const SequenceId sequence = engine.start(std::vector<TokenId>{1});
  EXPECT_THROW(engine.append(sequence, std::vector<TokenId>{-1}), CheckError);
}

// Random starts, forks, appends, requests and releases under memory pressure, against the reference implementation.
TEST_P(EngineCaches, RandomLivesOfSequencesEqualTheReference) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    RandomStream random(seed);
    HashRunner runner(kHashVocabulary, with_blocks(20 + static_cast<int>(random.below(60))));
    Engine engine(runner, {.max_batch_tokens = 1 + static_cast<int>(random.below(40))});
    std::map<SequenceId, std::vector<TokenId>> expected;
    std::uint64_t draws = 0;
    for (int round = 0; round < 30; ++round) {
      if (expected.size() < 8) {
        const std::vector<TokenId> prompt = prompt_of(1 + static_cast<int>(random.below(40)), random.bits());
        expected[engine.start(prompt)] = prompt;
      }
      auto chosen = expected.begin();
      std::advance(chosen, static_cast<long>(random.below(expected.size())));
      const auto [id, tokens] = *chosen;
      if (random.chance(0.4)) {
        const auto length = 1 + random.below(tokens.size());
        expected[engine.fork(id, static_cast<int>(length))] = {tokens.begin(),
                                                               tokens.begin() + static_cast<long>(length)};
      }
      if (random.chance(0.3)) {
        const std::vector<TokenId> more = prompt_of(1 + static_cast<int>(random.below(20)), random.bits());
        engine.append(id, more);
        expected[id].insert(expected[id].end(), more.begin(), more.end());
      }
      for (auto& [sequence, known] : expected) {
        if (known.size() > 120 || random.chance(0.5)) continue;
        const SampleRequest request = request_of(draws++, 1 + static_cast<int>(random.below(20)));
        for (const reference::Draw& draw : slow_draws(runner, known, request)) known.push_back(draw.token);
        engine.sample(sequence, request);
      }
      run(engine);
      for (const auto& [sequence, known] : expected) {
        const auto held = engine.tokens(sequence);
        ASSERT_EQ(std::vector<TokenId>(held.begin(), held.end()), known) << "seed " << seed << " round " << round;
      }
      if (random.chance(0.2)) {
        engine.release(id);
        expected.erase(id);
      }
    }
  }
}

}  // namespace
}  // namespace carnot
