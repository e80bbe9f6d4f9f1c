#include "carnot/serving/generator.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <numeric>
#include <set>

#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "testing/small_model.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using testing::small_tokenizer;

const Model& small_model() {
  static const Model model = testing::small_model({.max_positions = 256});
  return model;
}

std::vector<std::vector<TokenId>> ragged_prompts() {
  RandomStream random(4);
  std::vector<std::vector<TokenId>> prompts;
  for (const int length : {1, 17, 3, 40, 16, 2, 33}) {
    prompts.emplace_back();
    for (int i = 0; i < length; ++i) prompts.back().push_back(static_cast<TokenId>(3 + random.below(250)));
  }
  return prompts;
}

std::vector<GeneratedText> generated(const std::vector<std::vector<TokenId>>& prompts, const GenerateOptions& options) {
  std::vector<GeneratedText> texts;
  GenerateEvents events;
  events.on_text = [&](const GeneratedText& text) {
    texts.push_back(text);
    return true;
  };
  EXPECT_TRUE(generate(small_model(), small_tokenizer(), prompts, options, events));
  EXPECT_EQ(texts.size(), prompts.size() * static_cast<std::size_t>(options.samples));
  return texts;
}

std::vector<TokenId> ids_of(const GeneratedText& text) {
  std::vector<TokenId> ids;
  for (const TokenDraw& draw : text.draws) ids.push_back(draw.token);
  return ids;
}

/// Tokens and the bits of their statistics.
std::vector<std::array<std::uint32_t, 4>> bits_of(const GeneratedText& text) {
  std::vector<std::array<std::uint32_t, 4>> bits;
  for (const TokenDraw& draw : text.draws)
    bits.push_back({static_cast<std::uint32_t>(draw.token), std::bit_cast<std::uint32_t>(draw.log_prob),
                    std::bit_cast<std::uint32_t>(draw.entropy), std::bit_cast<std::uint32_t>(draw.logsumexp)});
  return bits;
}

TEST(Generate, GreedyEqualsAPlainLoopOverTheModelsLogits) {
  const at::NoGradGuard no_grad;
  const auto prompts = ragged_prompts();
  const auto texts = generated(prompts, {.max_tokens = 12});
  for (const GeneratedText& text : texts) {
    std::vector<std::int64_t> tokens(prompts[text.prompt].begin(), prompts[text.prompt].end());
    std::vector<TokenId> expected;
    while (expected.size() < 12) {
      const auto positions = at::arange(static_cast<std::int64_t>(tokens.size()));
      const at::Tensor hidden = small_model().hidden(at::tensor(tokens, at::kLong), positions,
                                                     PackedAttention{.offsets = {0, static_cast<int>(tokens.size())}});
      const at::Tensor logits = small_model().logits(hidden.slice(0, hidden.size(0) - 1));
      const auto best = logits.slice(1, 0, small_tokenizer().vocab_size()).argmax().item<std::int64_t>();
      expected.push_back(static_cast<TokenId>(best));
      tokens.push_back(best);
    }
    EXPECT_EQ(ids_of(text), expected) << "prompt " << text.prompt;
    EXPECT_EQ(text.text, small_tokenizer().decode(expected));
    EXPECT_EQ(text.finish, Finish::Length);
  }
}

TEST(Generate, RaggedPromptsTogetherEqualOneByOneBitForBit) {
  const auto prompts = ragged_prompts();
  const auto together = generated(prompts, {.max_tokens = 20});
  for (std::size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(bits_of(generated({prompts[i]}, {.max_tokens = 20}).front()), bits_of(together[i])) << "prompt " << i;
}

TEST(Generate, DrawsDependOnNeitherBatchNorMemoryNorThreads) {
  const auto prompts = ragged_prompts();
  const GenerateOptions options{
      .sampling = {.temperature = 0.8, .top_p = 0.95}, .samples = 3, .max_tokens = 20, .seed = 9};
  const auto expected = generated(prompts, options);
  std::set<std::vector<TokenId>> different;
  for (const GeneratedText& text : expected) different.insert(ids_of(text));
  EXPECT_EQ(different.size(), expected.size()) << "samples are separate draws";
  for (const int batch : {1, 2, 5}) {
    GenerateOptions other = options;
    other.batch = batch;
    other.cache_tokens = 64;
    set_num_threads(batch == 2 ? 2 : 1);
    const auto texts = generated(prompts, other);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(texts[i].prompt, i / 3);
      EXPECT_EQ(texts[i].sample, static_cast<int>(i % 3));
      EXPECT_EQ(bits_of(texts[i]), bits_of(expected[i])) << "text " << i << ", batch " << batch;
    }
  }
  set_num_threads(1);
}

TEST(Generate, LogProbabilitiesAreTheLogProbPassesBitForBit) {
  const auto prompts = ragged_prompts();
  const auto texts = generated(prompts, {.sampling = {.temperature = 1}, .max_tokens = 20});
  std::vector<MeasuredSequence> sequences;
  for (const GeneratedText& text : texts) {
    MeasuredSequence sequence{.tokens = prompts[text.prompt]};
    for (const TokenId id : ids_of(text)) {
      sequence.targets.push_back(static_cast<int>(sequence.tokens.size()));
      sequence.tokens.push_back(id);
    }
    sequences.push_back(std::move(sequence));
  }
  const TargetStatistics scored = measure_targets(small_model(), sequences, 100, 1);
  std::size_t at = 0;
  for (const GeneratedText& text : texts) {
    double sum = 0, scored_sum = 0;
    for (const TokenDraw& draw : text.draws) {
      EXPECT_EQ(static_cast<double>(draw.log_prob), scored.log_prob[at]);
      EXPECT_EQ(static_cast<double>(draw.entropy), scored.entropy[at]);
      sum += static_cast<double>(draw.log_prob);
      scored_sum += scored.log_prob[at++];
    }
    EXPECT_EQ(sum, scored_sum);
  }
}

TEST(Generate, EndsAtStopStringsAndStopTokens) {
  const auto prompts = ragged_prompts();
  const GeneratedText whole = generated({prompts[1]}, {.max_tokens = 30}).front();
  const std::string stop = whole.text.substr(whole.text.size() / 2, 3);
  const GeneratedText cut = generated({prompts[1]}, {.max_tokens = 30, .stop_strings = {"never", stop}}).front();
  EXPECT_EQ(cut.finish, Finish::StopString);
  EXPECT_EQ(cut.stop_string, stop);
  EXPECT_EQ(cut.text, whole.text.substr(0, whole.text.find(stop)));
  EXPECT_LT(cut.draws.size(), whole.draws.size());

  const TokenId last = whole.draws[4].token;
  const GeneratedText ended = generated({prompts[1]}, {.max_tokens = 30, .stop_tokens = {last}}).front();
  EXPECT_EQ(ended.finish, Finish::StopToken);
  EXPECT_EQ(ended.draws.back().token, last);
  std::vector<TokenId> ids = ids_of(ended);
  ids.pop_back();
  EXPECT_EQ(ended.text, small_tokenizer().decode(ids));
}

TEST(Generate, PiecesMakeUpTheText) {
  GenerateEvents events;
  std::string pieces, text;
  events.on_piece = [&](std::size_t, int, std::string_view piece) { pieces += piece; };
  events.on_text = [&](const GeneratedText& result) {
    text = result.text;
    return true;
  };
  const std::vector<std::vector<TokenId>> prompt{ragged_prompts()[3]};
  EXPECT_TRUE(generate(small_model(), small_tokenizer(), prompt, {.max_tokens = 25}, events));
  EXPECT_FALSE(text.empty());
  EXPECT_EQ(pieces, text);
}

TEST(Generate, EndsWhereTheModelsPositionsEnd) {
  const std::vector<TokenId> prompt(250, 5);
  EXPECT_EQ(generated({prompt}, {.max_tokens = 100}).front().draws.size(), 6u);
}

TEST(Generate, GoesOnNoFurtherThanItIsAskedTo) {
  GenerateEvents events;
  int texts = 0, steps = 0;
  events.on_text = [&](const GeneratedText&) { return ++texts < 2; };
  EXPECT_FALSE(generate(small_model(), small_tokenizer(), ragged_prompts(), {.max_tokens = 3}, events));
  EXPECT_EQ(texts, 2);
  events.on_text = [](const GeneratedText&) { return true; };
  events.go_on = [&] { return ++steps < 5; };
  EXPECT_FALSE(generate(small_model(), small_tokenizer(), ragged_prompts(), {.max_tokens = 50}, events));
  EXPECT_EQ(steps, 5);
}

}  // namespace
}  // namespace carnot
