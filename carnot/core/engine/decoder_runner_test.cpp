#include "carnot/core/engine/decoder_runner.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "carnot/core/engine/engine.h"
#include "testing/packed_batch.h"

namespace carnot {
namespace {

using testing::few_window_blocks;
using testing::small_decoder;

Model random_decoder(const std::string& family, at::ScalarType type) {
  ModelConfig config = small_decoder(family, 2, 16);
  config.vocab_size = 256;
  return Model(config, 4, at::TensorOptions().dtype(type), 0.4);
}

class DecoderRunnerOfFamily : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, DecoderRunnerOfFamily, ::testing::ValuesIn(model_family_names()));

TEST_P(DecoderRunnerOfFamily, AForkedSequenceSamplesWhatAFreshOneWouldBitForBit) {
  const Model model = random_decoder(GetParam(), at::kFloat);
  const auto draws = [&](bool forked, int max_batch_tokens) {
    DecoderRunner policy(model, {.blocks = 100, .states = forked ? 6 : 1, .window_blocks = few_window_blocks(model)});
    Engine engine(policy, {.max_batch_tokens = max_batch_tokens});
    std::vector<TokenId> prompt;
    for (int i = 0; i < 41; ++i) prompt.push_back(i * 7 % 256);
    const SequenceId root = engine.start(prompt);
    while (forked && engine.has_work()) engine.step();
    std::map<SequenceId, std::uint64_t> siblings;
    for (std::uint64_t i = 0; i < 5; ++i) {
      const SequenceId sequence = forked ? engine.fork(root, 41) : engine.start(prompt);
      engine.sample(sequence, {.key = {.sibling = i}, .max_tokens = 30});
      siblings[sequence] = i;
    }
    std::vector<std::vector<float>> log_probs(5);
    while (engine.has_work())
      for (const SampledToken& token : engine.step().tokens) {
        log_probs[siblings.at(token.sequence)].push_back(static_cast<float>(token.draw.token));
        log_probs[siblings.at(token.sequence)].push_back(token.draw.log_prob);
        log_probs[siblings.at(token.sequence)].push_back(token.draw.logsumexp);
      }
    return log_probs;
  };
  const auto fresh = draws(false, 1000);
  EXPECT_EQ(fresh[0].size(), 90u);
  EXPECT_EQ(draws(true, 1000), fresh);
  EXPECT_EQ(draws(true, 3), fresh) << "one step holds three rows";
  EXPECT_EQ(draws(false, 17), fresh) << "prompts are prefilled in parts";
}

/// A prefix, and what was sampled after it.
struct Answer {
  std::vector<TokenId> prefix;
  std::uint64_t sibling = 0;
  std::vector<TokenDraw> draws{};
};

/// Many answers to two prompts; some are forks of others midway, and some stop early.
std::vector<Answer> answers_behind_shared_blocks(Engine& engine) {
  std::map<SequenceId, Answer> live;
  std::vector<Answer> done;
  std::uint64_t siblings = 0;
  const auto sample = [&](SequenceId sequence) {
    const auto tokens = engine.tokens(sequence);
    live[sequence] = {.prefix = {tokens.begin(), tokens.end()}, .sibling = siblings};
    engine.sample(sequence, {.key = {.sibling = siblings}, .max_tokens = 20 + static_cast<int>(siblings % 5) * 8});
    ++siblings;
  };
  std::vector<SequenceId> roots;
  for (const int length : {150, 41}) {
    std::vector<TokenId> prompt;
    for (int i = 0; i < length; ++i) prompt.push_back((i * 7 + length) % 256);
    roots.push_back(engine.start(prompt));
  }
  while (engine.has_work()) engine.step();
  for (const SequenceId root : roots)
    for (int i = 0; i < 18; ++i) sample(engine.fork(root, static_cast<int>(engine.tokens(root).size())));
  for (int step = 0; engine.has_work(); ++step) {
    for (const SampledToken& token : engine.step().tokens) live.at(token.sequence).draws.push_back(token.draw);
    if (step % 4 == 3 && step < 40 && !live.empty()) {
      const SequenceId parent = live.begin()->first;
      sample(engine.fork(parent, static_cast<int>(engine.tokens(parent).size())));
    }
    if (step % 6 != 5 || live.empty()) continue;
    const SequenceId leaves = std::prev(live.end())->first;
    done.push_back(live.extract(leaves).mapped());
    engine.release(leaves);
  }
  for (auto& [sequence, answer] : live) done.push_back(std::move(answer));
  return done;
}

TEST_P(DecoderRunnerOfFamily, ManySiblingsAndTheirBranchesSampleWhatFreshOnesWouldBitForBit) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Model model = random_decoder(GetParam(), type);
    DecoderRunner policy(model, {.blocks = 400,
                                 .states = type == at::kFloat ? 100 : 12,
                                 .window_blocks = type == at::kFloat ? 100 : few_window_blocks(model)});
    Engine together(policy, {.max_batch_tokens = 100});
    const std::vector<Answer> answers = answers_behind_shared_blocks(together);
    EXPECT_GT(answers.size(), 40u);
    for (const Answer& answer : answers) {
      if (answer.draws.empty()) continue;
      DecoderRunner fresh_policy(model, {.blocks = 30, .states = 1});
      Engine alone(fresh_policy, {});
      alone.sample(alone.start(answer.prefix),
                   {.key = {.sibling = answer.sibling}, .max_tokens = static_cast<int>(answer.draws.size())});
      std::vector<TokenDraw> fresh;
      while (alone.has_work())
        for (const SampledToken& token : alone.step().tokens) fresh.push_back(token.draw);
      ASSERT_EQ(fresh.size(), answer.draws.size());
      for (std::size_t i = 0; i < fresh.size(); ++i) {
        ASSERT_EQ(fresh[i].token, answer.draws[i].token) << "answer " << answer.sibling << " token " << i;
        ASSERT_EQ(fresh[i].log_prob, answer.draws[i].log_prob);
        ASSERT_EQ(fresh[i].entropy, answer.draws[i].entropy);
        ASSERT_EQ(fresh[i].logsumexp, answer.draws[i].logsumexp);
      }
    }
  }
}

}  // namespace
}  // namespace carnot
