#include "carnot/core/rollout/info_gain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/branch/balanced_branch.h"
#include "carnot/core/branch/branch.h"
#include "carnot/core/branch/entropy_branch.h"
#include "carnot/core/branch/tree_expand.h"
#include "testing/model_rollout.h"
#include "testing/packed_batch.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

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
  const Model model = qwen3_model(at::kDouble);
  const AnswerLead lead{.text = "<think>so</think> <answer>"};
  const std::string open_lead = "so</think> <answer>";  // every context of this environment ends with "<think>"
  for (const GainMeasure measure : {GainMeasure::Probability, GainMeasure::LogProbability}) {
    std::vector<Group> groups = groups_of(model, 1, *entropy_branch({.initial = 2}));
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

class InformationGainsOfFamily : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, InformationGainsOfFamily, ::testing::Values("qwen3", "qwen3_5_text"));

TEST_P(InformationGainsOfFamily, OfARolloutEqualAPassOverItsTrajectoriesBitForBit) {
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
  const Model model = testing::small_model({.family = GetParam()});
  const AnswerLead lead{.text = "<think>so</think> <answer>"};
  for (const auto& policy : policies) {
    for (const ScriptedOptions& script : scripts) {
      for (const GainMeasure measure : {GainMeasure::Probability, GainMeasure::LogProbability}) {
        const InfoGainOptions gain{.measure = measure, .query_baseline = measure == GainMeasure::Probability};
        for (const int num_blocks : {400, 40}) {
          const RolloutCase as{.max_batch_tokens = num_blocks == 40 ? 23 : 200,
                               .num_blocks = num_blocks,
                               .num_states = num_blocks / 8,
                               .num_window_blocks = num_blocks == 40 ? testing::few_window_blocks(model) : 0,
                               .answer_scoring = {{.lead = lead, .gain = gain}},
                               .script = script};
          std::vector<Group> groups = groups_of(model, 0.8, *policy, as);
          const auto scored = gains_of(groups);
          clear_info_gain(groups);
          EXPECT_NE(scored, gains_of(groups)) << "something was scored";
          measure_info_gain(model, small_tokenizer(), groups, lead, gain, {.max_tokens = 300, .temperature = 0.8});
          EXPECT_EQ(scored, gains_of(groups)) << policy->name();
          const RolloutCase unscored{.max_batch_tokens = as.max_batch_tokens, .num_blocks = 400, .script = script};
          EXPECT_EQ(described({.groups = groups_of(model, 0.8, *policy, unscored)}), described({.groups = groups}))
              << "scoring does not change what is sampled";
        }
      }
    }
  }
}

TEST(Measure, WhatARolloutHasScoredIsNotMeasuredAgain) {
  const Model model = qwen3_model(at::kFloat), other = qwen3_model(at::kFloat, 4);
  std::vector<Group> groups = groups_of(model, 1, *independent(), {.answer_scoring = AnswerScoring{}});
  const auto scored = gains_of(groups);
  measure_info_gain(other, small_tokenizer(), groups, {}, {}, {});
  EXPECT_EQ(scored, gains_of(groups));
}

TEST(Measure, WithoutTheQueryBaselineTheFirstTurnHasNoGain) {
  const Model model = qwen3_model(at::kFloat);
  std::vector<Group> groups = groups_of(model, 1);
  groups[1].ground_truth.clear();
  measure_info_gain(model, small_tokenizer(), groups, {}, {.query_baseline = false}, {});
  const Tree& tree = groups[0].trees[0];
  EXPECT_FALSE(tree.turns[0].info_gain.has_value());
  EXPECT_TRUE(tree.turns[1].info_gain.has_value());
  for (const Tree& unanswered : groups[1].trees)
    for (const Turn& turn : unanswered.turns) EXPECT_FALSE(turn.info_gain.has_value());
}

}  // namespace
}  // namespace carnot
