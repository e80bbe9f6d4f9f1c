#include "carnot/core/rollout/measure.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/branch/entropy_branch.h"
#include "testing/model_rollout.h"
#include "testing/packed_batch.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

/// Expects the old policy's columns to equal the rollout's; the number of tokens compared.
int tokens_with_the_rollouts_bits(std::span<const Group> groups) {
  int tokens = 0;
  for (const Trajectory& trajectory : trajectories(groups)) {
    for (const auto& [rollout_column, old_column] : {std::pair(Column::LogProbRollout, Column::LogProbOld),
                                                     std::pair(Column::EntropyRollout, Column::EntropyOld)}) {
      const auto rollout = trajectory.column(rollout_column), old = trajectory.column(old_column);
      for (std::size_t i = 0; i < old.size(); ++i) {
        if (std::isnan(old[i])) continue;
        EXPECT_EQ(rollout[i], old[i]) << name_of(old_column) << " of token " << i;
        ++tokens;
      }
    }
  }
  return tokens / 2;
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
    std::vector<Group> groups =
        groups_of(model, temperature, *entropy_branch({.initial = 2}), {.max_batch_tokens = 37});
    measure_old_policy(model, groups, {.max_tokens = 150, .temperature = temperature});
    EXPECT_GT(tokens_with_the_rollouts_bits(groups), 200);
  }
}

TEST(Measure, OldPolicyAndReferenceEqualTheDefinitionTokenByToken) {
  const Model model = qwen3_model(at::kDouble);
  const Model reference = qwen3_model(at::kDouble, 8);
  std::vector<Group> groups = groups_of(model, 0.8, *entropy_branch({.initial = 2}));
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
  const Model model = qwen3_model(at::kFloat);
  std::vector<Group> groups = groups_of(model, 1);
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
  const Model model = qwen3_model(at::kFloat);
  std::vector<Group> groups = groups_of(model, 1);
  groups[0].trees[1].leaves[0].dropped = true;
  measure_old_policy(model, groups, {});
  const Tree& tree = groups[0].trees[1];
  EXPECT_THAT(violations(tree), ::testing::IsEmpty());
  for (double value : tree.columns.turn(Column::LogProbOld, 0)) EXPECT_TRUE(std::isnan(value));
}

TEST(Measure, TheRolloutsColumnsMeasuredAgainEqualTheEnginesBitForBit) {
  for (const auto& [type, temperature] : {std::pair(at::kFloat, 1.0), std::pair(at::kBFloat16, 0.6)}) {
    const Model model = qwen3_model(type);
    const std::vector<Group> engine =
        groups_of(model, temperature, *entropy_branch({.initial = 2}), {.max_batch_tokens = 37});
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
  const Model model = qwen3_model(at::kFloat);
  std::vector<Group> groups = groups_of(model, 1);
  reuse_rollout_statistics(groups);
  EXPECT_GT(tokens_with_the_rollouts_bits(groups), 0);
}

TEST(Measure, ValuesBelongToTheTokensTheyPrecede) {
  const Model trunk = qwen3_model(at::kDouble);
  ValueModel critic(trunk);
  for (const NamedTensor& parameter : critic.parameters())
    if (parameter.name.find("value_head") != std::string::npos) parameter.tensor.detach().fill_(0.1);
  std::vector<Group> groups = groups_of(trunk, 1);
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

}  // namespace
}  // namespace carnot
