#include "carnot/core/rollout/forked_log_probs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/random.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "testing/packed_batch.h"

namespace carnot {
namespace {

constexpr int kVocabulary = 60;

Model small_model(at::ScalarType type, const std::string& family = "qwen3") {
  ModelConfig config = testing::small_decoder(family);
  config.vocab_size = kVocabulary;
  return Model(config, 3, at::TensorOptions().dtype(type), 0.4);
}

struct Questions {
  std::vector<SharedContext> contexts{};
  std::vector<ForkedAnswer> answers{};
};

std::vector<TokenId> random_tokens(RandomStream& random, int count) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(random.below(kVocabulary)));
  return tokens;
}

/// Trees of contexts of 1 to 40 tokens, with answers after any of them: on both sides of block boundaries.
Questions random_questions(std::uint64_t seed) {
  RandomStream random(seed);
  Questions questions;
  for (int i = 0; i < 30; ++i)
    questions.contexts.push_back(
        {.parent = i == 0 ? -1 : static_cast<int>(random.below(static_cast<std::uint64_t>(i) + 1)) - 1,
         .tokens = random_tokens(random, 1 + static_cast<int>(random.below(40)))});
  for (int i = 0; i < 40; ++i)
    questions.answers.push_back({.context = static_cast<int>(random.below(30)),
                                 .lead = random_tokens(random, static_cast<int>(random.below(20))),
                                 .tokens = random_tokens(random, 1 + static_cast<int>(random.below(5)))});
  return questions;
}

/// The slow way: every context from its beginning, in one packed pass.
std::vector<double> packed(const Model& model, const Questions& questions, double temperature) {
  std::vector<MeasuredSequence> sequences;
  for (const ForkedAnswer& answer : questions.answers) {
    MeasuredSequence sequence;
    for (int at = answer.context; at >= 0; at = questions.contexts[at].parent) {
      const auto& tokens = questions.contexts[at].tokens;
      sequence.tokens.insert(sequence.tokens.begin(), tokens.begin(), tokens.end());
    }
    sequence.tokens.insert(sequence.tokens.end(), answer.lead.begin(), answer.lead.end());
    for (TokenId token : answer.tokens) {
      sequence.targets.push_back(static_cast<int>(sequence.tokens.size()));
      sequence.tokens.push_back(token);
    }
    sequences.push_back(std::move(sequence));
  }
  return measure_targets(model, sequences, 4096, temperature).log_prob;
}

class ForkedLogProbs : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, ForkedLogProbs, ::testing::ValuesIn(model_family_names()));

TEST_P(ForkedLogProbs, EqualsAPassOverEveryContextFromItsStartBitForBit) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const Model model = small_model(type, GetParam());
    for (std::uint64_t seed = 0; seed < 2; ++seed) {
      const Questions questions = random_questions(seed);
      const std::vector<double> slow = packed(model, questions, 0.7);
      for (const int max_tokens : {1, 50, 5000})
        EXPECT_EQ(forked_log_probs(model, questions.contexts, questions.answers,
                                   {.max_tokens = max_tokens, .temperature = 0.7}),
                  slow)
            << "seed " << seed << ", " << max_tokens << " rows a forward";
    }
  }
}

TEST(ForkedLogProbsOfOneModel, AgreesWithThePackedPassUnderPortableKernels) {
  Model model = small_model(at::kDouble);
  model.choose_kernels(KernelChoice::Portable);
  const Questions questions = random_questions(9);
  EXPECT_THAT(forked_log_probs(model, questions.contexts, questions.answers, {.max_tokens = 200}),
              ::testing::Pointwise(::testing::DoubleNear(1e-10), packed(model, questions, 1)));
}

TEST(ForkedLogProbsOfOneModel, ComputesNothingForNoAnswers) {
  const Model model = small_model(at::kFloat);
  const std::vector<SharedContext> contexts{{.tokens = {1, 2}}};
  EXPECT_TRUE(forked_log_probs(model, contexts, {}, {}).empty());
}

}  // namespace
}  // namespace carnot
