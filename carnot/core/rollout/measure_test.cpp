#include "carnot/core/rollout/measure.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/branch/balanced_branch.h"
#include "carnot/core/branch/branch.h"
#include "carnot/core/branch/entropy_branch.h"
#include "carnot/core/branch/tree_expand.h"
#include "carnot/core/engine/decoder_runner.h"
#include "carnot/core/rollout/info_gain.h"
#include "testing/packed_batch.h"
#include "testing/scripted_rollout.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

Model small_model(at::ScalarType type, std::uint64_t seed = 3) {
  const ModelConfig config{.family = "qwen3",
                           .vocab_size = small_tokenizer().vocab_size() + 5,
                           .hidden_size = 32,
                           .intermediate_size = 48,
                           .num_layers = 2,
                           .num_heads = 4,
                           .num_kv_heads = 2,
                           .head_dim = 8};
  return Model(config, seed, at::TensorOptions().dtype(type), 0.4);
}

struct RolloutCase {
  int max_batch_tokens = 200;
  int num_blocks = 400;
  std::optional<AnswerScoring> answer_scoring{};
  ScriptedOptions script{};
};

std::vector<Group> rollout(const Model& model, double temperature, const BranchPolicy& policy = *independent(),
                           const RolloutCase& as = {}) {
  DecoderRunner engine_policy(model, as.num_blocks);
  Engine engine(engine_policy,
                {.max_batch_tokens = as.max_batch_tokens, .drawable_tokens = small_tokenizer().vocab_size()});
  const RolloutOptions options{
      .group_size = 4, .sampling = {.temperature = temperature}, .answer_scoring = as.answer_scoring};
  return roll_out(engine, small_chat(), policy, scripted_tasks(2, as.script), options, kRolloutKey).groups;
}

// The definition: the whole prefix through the model for one token, softmax in double over its logits.
struct PlainStatistics {
  double log_prob = 0, entropy = 0, logsumexp = 0;
};
PlainStatistics plain_statistics(const Model& model, std::span<const TokenId> prefix, TokenId target,
                                 double temperature) {
  const at::NoGradGuard no_grad;
  std::vector<std::int64_t> tokens(prefix.begin(), prefix.end()), positions;
  for (std::size_t i = 0; i < tokens.size(); ++i) positions.push_back(static_cast<std::int64_t>(i));
  const at::Tensor hidden = model.hidden(at::tensor(tokens, at::kLong), at::tensor(positions, at::kLong),
                                         PackedAttention{.offsets = {0, static_cast<int>(tokens.size())}});
  const at::Tensor logits =
      at::matmul(model.head().to(at::kDouble), hidden.select(0, hidden.size(0) - 1).to(at::kDouble)).contiguous();
  const std::span<const double> z(logits.const_data_ptr<double>(), logits.numel());
  PlainStatistics out;
  double sum = 0;
  for (double logit : z) sum += std::exp(logit / temperature);
  out.logsumexp = std::log(sum);
  for (double logit : z) {
    const double log_p = logit / temperature - out.logsumexp;
    out.entropy -= std::exp(log_p) * log_p;
  }
  out.log_prob = z[target] / temperature - out.logsumexp;
  return out;
}

class MeasureOfFamily : public ::testing::TestWithParam<std::string> {
 protected:
  static Model make(at::ScalarType type) {
    ModelConfig config = small_decoder(GetParam());
    config.vocab_size = small_tokenizer().vocab_size() + 5;
    return Model(config, 3, at::TensorOptions().dtype(type), 0.3);
  }
};
INSTANTIATE_TEST_SUITE_P(Families, MeasureOfFamily, ::testing::ValuesIn(model_family_names()));

TEST_P(MeasureOfFamily, TheRolloutsLogProbabilitiesEqualTheTrainingForwardBitForBit) {
  for (const auto& [type, temperature] : {std::pair(at::kFloat, 1.0), std::pair(at::kFloat, 0.6),
                                          std::pair(at::kBFloat16, 1.0), std::pair(at::kBFloat16, 0.6)}) {
    const Model model = make(type);
    std::vector<Group> groups = rollout(model, temperature, *entropy_branch({.initial = 2}), {.max_batch_tokens = 37});
    measure_old_policy(model, groups, {.max_tokens = 150, .temperature = temperature});
    const LogProbMismatch mismatch = log_prob_mismatch(groups);
    EXPECT_GT(mismatch.tokens, 200);
    EXPECT_EQ(mismatch.bit_equal, mismatch.tokens) << "largest difference " << mismatch.largest;
    for (const Trajectory& trajectory : trajectories(groups)) {
      const auto rollout_entropy = trajectory.column(Column::EntropyRollout),
                 old = trajectory.column(Column::EntropyOld);
      for (std::size_t i = 0; i < old.size(); ++i) {
        EXPECT_TRUE(std::isnan(old[i]) || rollout_entropy[i] == old[i]);
      }
    }
  }
}

TEST(Measure, OldPolicyAndReferenceEqualTheDefinitionTokenByToken) {
  const Model model = small_model(at::kDouble);
  const Model reference = small_model(at::kDouble, 8);
  std::vector<Group> groups = rollout(model, 0.8, *entropy_branch({.initial = 2}));
  measure_old_policy(model, groups, {.temperature = 0.8});
  measure_reference(reference, groups, {.temperature = 0.8});
  int checked = 0;
  for (const Trajectory& trajectory : trajectories(groups)) {
    const std::vector<TokenId> tokens = trajectory.tokens();
    const std::vector<bool> sampled = trajectory.sampled();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_EQ(std::isnan(trajectory.column(Column::LogProbOld)[i]), !sampled[i]);
      if (!sampled[i] || i % 5 != 0) continue;
      ++checked;
      const auto prefix = std::span(tokens).first(i);
      const PlainStatistics old = plain_statistics(model, prefix, tokens[i], 0.8),
                            frozen = plain_statistics(reference, prefix, tokens[i], 0.8);
      EXPECT_NEAR(trajectory.column(Column::LogProbOld)[i], old.log_prob, 1e-10);
      EXPECT_NEAR(trajectory.column(Column::EntropyOld)[i], old.entropy, 1e-10);
      EXPECT_NEAR(trajectory.column(Column::LogProbReference)[i], frozen.log_prob, 1e-10);
      EXPECT_NEAR(trajectory.column(Column::EntropyReference)[i], frozen.entropy, 1e-10);
      EXPECT_NEAR(trajectory.column(Column::EnergyReference)[i],
                  -plain_statistics(reference, prefix, tokens[i], 1).logsumexp, 1e-10);
    }
  }
  EXPECT_GT(checked, 50);
}

TEST(Measure, MicroBatchesDoNotChangeABit) {
  const Model model = small_model(at::kFloat);
  std::vector<Group> groups = rollout(model, 1);
  std::vector<Group> others = groups;
  measure_old_policy(model, groups, {.max_tokens = 1});
  measure_old_policy(model, others, {.max_tokens = 100000});
  const auto one = trajectories(groups), all = trajectories(others);
  for (std::size_t i = 0; i < one.size(); ++i) {
    const auto a = one[i].column(Column::LogProbOld), b = all[i].column(Column::LogProbOld);
    for (std::size_t j = 0; j < a.size(); ++j) EXPECT_TRUE(a[j] == b[j] || (std::isnan(a[j]) && std::isnan(b[j])));
  }
}

TEST(Measure, SkipsLeavesThatDoNotCountAndKeepsTheColumnsComplete) {
  const Model model = small_model(at::kFloat);
  std::vector<Group> groups = rollout(model, 1);
  groups[0].trees[1].leaves[0].dropped = true;
  measure_old_policy(model, groups, {});
  const Tree& tree = groups[0].trees[1];
  EXPECT_THAT(violations(tree), ::testing::IsEmpty());
  for (double value : tree.columns.turn(Column::LogProbOld, 0)) EXPECT_TRUE(std::isnan(value));
}

TEST(Measure, TheRolloutsColumnsMeasuredAgainEqualTheEnginesBitForBit) {
  for (const auto& [type, temperature] : {std::pair(at::kFloat, 1.0), std::pair(at::kBFloat16, 0.6)}) {
    const Model model = small_model(type);
    const std::vector<Group> engine =
        rollout(model, temperature, *entropy_branch({.initial = 2}), {.max_batch_tokens = 37});
    std::vector<Group> groups = engine;
    const LogProbPassOptions options{.max_tokens = 150, .temperature = temperature};
    EXPECT_EQ(measure_rollout(model, groups, options).largest, 0);
    // As another kernel set might have left it, and with leaves that do not count.
    groups[0].trees[0].leaves[0].dropped = true;
    groups[1].trees[0].leaves[0].outcome = Outcome::InfraFailed;
    for (Group& group : groups)
      for (Tree& tree : group.trees)
        for (std::size_t turn = 0; turn < tree.turns.size(); ++turn)
          for (const Column column : {Column::LogProbRollout, Column::EntropyRollout})
            for (double& value :
                 tree.columns.edit(column, static_cast<int>(turn), static_cast<int>(tree.turns[turn].tokens.size())))
              value += 1e-3;
    const ColumnDifference difference = measure_rollout(model, groups, options);
    EXPECT_NEAR(difference.largest, 1e-3, 1e-12);
    std::int64_t compared = 0;
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (std::size_t t = 0; t < groups[g].trees.size(); ++t)
        for (std::size_t turn = 0; turn < groups[g].trees[t].turns.size(); ++turn)
          for (const Column column : {Column::LogProbRollout, Column::EntropyRollout}) {
            const auto& again = groups[g].trees[t].columns.turn(column, static_cast<int>(turn));
            const auto& first = engine[g].trees[t].columns.turn(column, static_cast<int>(turn));
            ASSERT_EQ(again.size(), first.size());
            for (std::size_t i = 0; i < first.size(); ++i) {
              EXPECT_EQ(std::isnan(again[i]), std::isnan(first[i]));
              if (std::isnan(first[i])) continue;
              EXPECT_EQ(again[i], first[i]);
              ++compared;
            }
          }
    EXPECT_EQ(compared, 2 * difference.tokens);
    EXPECT_GT(difference.tokens, 100);
  }
}

TEST(Measure, ReusedStatisticsAreTheRollouts) {
  const Model model = small_model(at::kFloat);
  std::vector<Group> groups = rollout(model, 1);
  reuse_rollout_statistics(groups);
  const LogProbMismatch mismatch = log_prob_mismatch(groups);
  EXPECT_EQ(mismatch.bit_equal, mismatch.tokens);
  EXPECT_GT(mismatch.tokens, 0);
  EXPECT_EQ(mismatch.kl, 0);
}

TEST(Measure, ValuesBelongToTheTokensTheyPrecede) {
  const Model trunk = small_model(at::kDouble);
  ValueModel critic(trunk);
  for (const NamedTensor& parameter : critic.parameters())
    if (parameter.name.find("value_head") != std::string::npos) parameter.tensor.detach().fill_(0.1);
  std::vector<Group> groups = rollout(trunk, 1);
  measure_values(critic, groups, {.max_tokens = 90});
  const Trajectory trajectory = trajectories(groups)[0];
  const std::vector<TokenId> tokens = trajectory.tokens();
  std::vector<std::int64_t> fed(tokens.begin(), tokens.end()), positions;
  for (std::size_t i = 0; i < fed.size(); ++i) positions.push_back(static_cast<std::int64_t>(i));
  const at::NoGradGuard no_grad;
  const at::Tensor values = critic.values(at::tensor(fed, at::kLong), at::tensor(positions, at::kLong),
                                          PackedAttention{.offsets = {0, static_cast<int>(fed.size())}});
  const std::vector<double> column = trajectory.column(Column::Value);
  int compared = 0;
  for (std::size_t i = 1; i < column.size(); ++i) {
    if (std::isnan(column[i])) continue;
    ++compared;
    EXPECT_NEAR(column[i], values[static_cast<std::int64_t>(i) - 1].item<double>(), 1e-12);
  }
  EXPECT_EQ(compared, trajectory.num_sampled());
}

// Mean log-probability of the answer's tokens after a context and the lead, token by token.
double plain_mean_log_prob(const Model& model, std::vector<TokenId> context, const std::string& lead,
                           const std::string& answer) {
  for (TokenId token : small_tokenizer().encode(lead)) context.push_back(token);
  double sum = 0;
  const std::vector<TokenId> tokens = small_tokenizer().encode(answer);
  for (TokenId token : tokens) {
    sum += plain_statistics(model, context, token, 1).log_prob;
    context.push_back(token);
  }
  return sum / static_cast<double>(tokens.size());
}

TEST(Measure, InformationGainIsTheChangeOfTheAnswersProbabilityOverATurn) {
  const Model model = small_model(at::kDouble);
  const AnswerLead lead{.text = "<think>so</think> <answer>"};
  const std::string open_lead = "so</think> <answer>";  // every context of this environment ends with "<think>"
  for (const GainMeasure measure : {GainMeasure::Probability, GainMeasure::LogProbability}) {
    std::vector<Group> groups = rollout(model, 1, *entropy_branch({.initial = 2}));
    measure_info_gain(model, small_tokenizer(), groups, lead, {.measure = measure}, {.max_tokens = 300});
    const auto score = [&](std::span<const TokenId> context) {
      const double mean = plain_mean_log_prob(model, {context.begin(), context.end()}, open_lead, "yes");
      return measure == GainMeasure::Probability ? std::exp(mean) : mean;
    };
    const Trajectory trajectory = trajectories(groups)[1];
    const std::vector<TokenId> tokens = trajectory.tokens();
    double before = score(std::span(tokens).first(trajectory.sampled_begin(0)));
    EXPECT_NEAR(*groups[0].query_baseline, before, 1e-10);
    for (int k = 0; k + 1 < trajectory.num_turns(); ++k) {
      const double now = score(std::span(tokens).first(trajectory.turn_offsets[static_cast<std::size_t>(k) + 1]));
      ASSERT_TRUE(trajectory.turn(k).info_gain.has_value());
      EXPECT_NEAR(*trajectory.turn(k).info_gain, now - before, 1e-10);
      EXPECT_NE(now, before);
      before = now;
    }
    EXPECT_FALSE(trajectory.turn(trajectory.num_turns() - 1).info_gain.has_value());
    for (const Trajectory& other : trajectories(groups))
      for (int k = 0; k + 1 < other.num_turns(); ++k) EXPECT_TRUE(other.turn(k).info_gain.has_value());
  }
}

// The gain of every turn and the baseline of every group, including missing ones.
std::vector<std::optional<double>> gains_of(std::span<const Group> groups) {
  std::vector<std::optional<double>> all;
  for (const Group& group : groups) {
    all.push_back(group.query_baseline);
    for (const Tree& tree : group.trees)
      for (const Turn& turn : tree.turns) all.push_back(turn.info_gain);
  }
  return all;
}

TEST(Measure, InformationGainsOfARolloutEqualAPassOverItsTrajectoriesBitForBit) {
  const auto fresh_every_other_turn = [](int turn, Reply& reply) {
    if (reply.done || turn % 2 == 0) return;
    reply.form = ReplyForm::FreshPrompt;
    reply.prompt = {.user = "go on from " + reply.text};
  };
  const auto fails_at_times = [](int turn, Reply& reply) {
    if (turn != 1 || reply.text.back() > '4') return;
    reply.done = true;
    reply.outcome = Outcome::InfraFailed;
  };
  std::vector<std::unique_ptr<BranchPolicy>> policies;
  policies.push_back(independent());
  policies.push_back(entropy_branch({.initial = 2}));
  policies.push_back(balanced_branch());
  policies.push_back(tree_expand({.trees = 2, .nodes = 2}));
  const std::vector<ScriptedOptions> scripts{{}, {.change = fresh_every_other_turn}, {.change = fails_at_times}};
  const Model model = small_model(at::kFloat);
  const AnswerLead lead{.text = "<think>so</think> <answer>"};
  for (const auto& policy : policies) {
    for (const ScriptedOptions& script : scripts) {
      for (const GainMeasure measure : {GainMeasure::Probability, GainMeasure::LogProbability}) {
        const InfoGainOptions gain{.measure = measure, .query_baseline = measure == GainMeasure::Probability};
        for (const int num_blocks : {400, 40}) {
          const RolloutCase as{.max_batch_tokens = num_blocks == 40 ? 23 : 200,
                               .num_blocks = num_blocks,
                               .answer_scoring = {{.lead = lead, .gain = gain}},
                               .script = script};
          std::vector<Group> groups = rollout(model, 0.8, *policy, as);
          const auto scored = gains_of(groups);
          clear_info_gain(groups);
          EXPECT_NE(scored, gains_of(groups)) << "something was scored";
          measure_info_gain(model, small_tokenizer(), groups, lead, gain, {.max_tokens = 300, .temperature = 0.8});
          EXPECT_EQ(scored, gains_of(groups)) << policy->name();
          const RolloutCase unscored{.max_batch_tokens = as.max_batch_tokens, .num_blocks = 400, .script = script};
          EXPECT_EQ(described({.groups = rollout(model, 0.8, *policy, unscored)}), described({.groups = groups}))
              << "scoring does not change what is sampled";
        }
      }
    }
  }
}

TEST(Measure, WhatARolloutHasScoredIsNotMeasuredAgain) {
  const Model model = small_model(at::kFloat), other = small_model(at::kFloat, 4);
  std::vector<Group> groups = rollout(model, 1, *independent(), {.answer_scoring = AnswerScoring{}});
  const auto scored = gains_of(groups);
  measure_info_gain(other, small_tokenizer(), groups, {}, {}, {});
  EXPECT_EQ(scored, gains_of(groups));
}

TEST(Measure, WithoutTheQueryBaselineTheFirstTurnHasNoGain) {
  const Model model = small_model(at::kFloat);
  std::vector<Group> groups = rollout(model, 1);
  groups[1].ground_truth.clear();
  measure_info_gain(model, small_tokenizer(), groups, {}, {.query_baseline = false}, {});
  const Tree& tree = groups[0].trees[0];
  EXPECT_FALSE(tree.turns[0].info_gain.has_value());
  EXPECT_TRUE(tree.turns[1].info_gain.has_value());
  for (const Tree& unanswered : groups[1].trees)
    for (const Turn& turn : unanswered.turns) EXPECT_FALSE(turn.info_gain.has_value());
}

TEST(DecoderRunner, AForkedSequenceSamplesWhatAFreshOneWouldBitForBit) {
  const Model model = small_model(at::kFloat);
  const auto draws = [&](bool forked, int max_batch_tokens) {
    DecoderRunner policy(model, 100);
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

class DecoderRunnerOfFamily : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, DecoderRunnerOfFamily, ::testing::ValuesIn(model_family_names()));

TEST_P(DecoderRunnerOfFamily, ManySiblingsAndTheirBranchesSampleWhatFreshOnesWouldBitForBit) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    ModelConfig config = small_decoder(GetParam());
    config.vocab_size = 256;
    config.head_dim = 16;
    const Model model(config, 4, at::TensorOptions().dtype(type), 0.4);
    DecoderRunner policy(model, 400);
    Engine together(policy, {.max_batch_tokens = 100});
    const std::vector<Answer> answers = answers_behind_shared_blocks(together);
    EXPECT_GT(answers.size(), 40u);
    for (const Answer& answer : answers) {
      if (answer.draws.empty()) continue;
      DecoderRunner fresh_policy(model, 30);
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
