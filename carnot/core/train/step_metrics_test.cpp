#include "carnot/core/train/step_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "testing/absent_members.h"
#include "testing/paths.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using testing::random_groups;

struct Signal {
  Column column;
  std::vector<double> values;
};

/// A chain of one turn, all of it sampled, with these signals on its tokens.
Tree chain(const std::vector<Signal>& signals) {
  Tree tree;
  const std::size_t tokens = signals.front().values.size();
  const int size = static_cast<int>(tokens);
  tree.turns.push_back(
      {.tokens = std::vector<TokenId>(tokens), .sampled_end = size, .spans = {{SpanKind::Action, 0, size}}});
  tree.leaves.push_back({.turn = 0});
  for (const Signal& signal : signals) tree.columns.edit(signal.column, 0, size) = signal.values;
  return tree;
}

TEST(MismatchMetrics, EqualTheirDefinitionsComputedByHand) {
  // Log-ratios log 2 and log 1/2 in one trajectory, log 4 in the other.
  const double two = std::log(2.0), four = std::log(4.0);
  const std::vector<Group> groups = {
      {.trees = {chain({{Column::LogProbOld, {-1, -2}}, {Column::LogProbRollout, {-1 - two, -2 + two}}}),
                 chain({{Column::LogProbOld, {-3}}, {Column::LogProbRollout, {-3 - four}}})}}};
  const auto metrics = mismatch_metrics(trajectories(groups), 0);
  EXPECT_NEAR(metrics.at("rollout_corr/kl"), -four / 3, 1e-12);
  EXPECT_NEAR(metrics.at("rollout_corr/k3_kl"), (2 + 0.5 + 4 - 3 - four) / 3, 1e-12);
  EXPECT_NEAR(metrics.at("rollout_corr/chi2_token"), (4 + 0.25 + 16) / 3 - 1, 1e-12);
  EXPECT_NEAR(metrics.at("rollout_corr/chi2_seq"), (1 + 16) / 2.0 - 1, 1e-12);
  EXPECT_NEAR(metrics.at("rollout_corr/rollout_is_eff_sample_size"), 6.5 * 6.5 / (3 * 20.25), 1e-12);
  EXPECT_FALSE(metrics.contains("rollout_corr/rollout_is_mean"));

  const auto capped = mismatch_metrics(trajectories(groups), 1);
  EXPECT_NEAR(capped.at("rollout_corr/rollout_is_mean"), 2.5 / 3, 1e-12);
  EXPECT_NEAR(capped.at("rollout_corr/rollout_is_eff_sample_size"), 2.5 * 2.5 / (3 * 2.25), 1e-12);
}

TEST(MismatchMetrics, AreAbsentWithoutAMismatchOrAColumn) {
  const std::vector<Group> same = {
      {.trees = {chain({{Column::LogProbOld, {-1, -2}}, {Column::LogProbRollout, {-1, -2}}})}}};
  for (const auto& [name, value] : mismatch_metrics(trajectories(same), 0))
    EXPECT_EQ(value, name.ends_with("eff_sample_size") ? 1 : 0) << name;
  const std::vector<Group> without = {{.trees = {chain({{Column::LogProbOld, {-1, -2}}})}}};
  EXPECT_THAT(mismatch_metrics(trajectories(without), 0), ::testing::IsEmpty());
}

TEST(MismatchMetrics, StayFiniteForVanishingProbabilities) {
  const std::vector<Group> groups = {
      {.trees = {chain({{Column::LogProbOld, {-1e4, 0}}, {Column::LogProbRollout, {0, -1e4}}})}}};
  for (const auto& [name, value] : mismatch_metrics(trajectories(groups), 0)) EXPECT_TRUE(std::isfinite(value)) << name;
}

TEST(CreditMetrics, ExplainedVarianceComparesValuesWithTargets) {
  const std::vector<Group> groups = {{.trees = {chain({{Column::Value, {1, 2, 3, 4}}})}}};
  const auto all = trajectories(groups);
  CreditTable credit = fresh_credit(all);
  const auto explained = [&](const std::vector<double>& targets) {
    credit[0].value_target = targets;
    return credit_metrics(all, credit).at("critic/vf_explained_var");
  };
  EXPECT_NEAR(explained({1, 2, 3, 4}), 1, 1e-12);
  EXPECT_NEAR(explained({6, 7, 8, 9}), 1, 1e-12);  // a constant error is no variance
  EXPECT_NEAR(explained({4, 3, 2, 1}), -3, 1e-4);
  EXPECT_NEAR(explained({2, 4, 6, 8}), 0.75, 1e-5);
  EXPECT_LT(explained({5, 5, 5, 5}), -1e4);  // nothing to explain
  EXPECT_NEAR(credit_metrics(all, credit).at("critic/values/mean"), 2.5, 1e-12);
}

TEST(TrajectoryMetrics, CountAGroupWithOnePenaltyAsHavingASignal) {
  std::vector<Group> groups(2);
  for (Group& group : groups)
    for (int i = 0; i < 4; ++i) group.trees.push_back(chain({{Column::EntropyRollout, {0.5}}}));
  EXPECT_EQ(trajectory_metrics(trajectories(groups), "maths").at("frac_reward_zero_std"), 1);
  // Scores are equal, but rewards are not: the group has advantages.
  groups[1].trees[2].turns[0].penalty = -0.1;
  EXPECT_EQ(trajectory_metrics(trajectories(groups), "maths").at("frac_reward_zero_std"), 0.5);
}

TEST(KlToReference, IsTheMeanOverTrajectoriesOfTheirMeans) {
  std::vector<Group> groups = {
      {.trees = {chain({{Column::LogProbOld, {-1, -2, -3}}, {Column::LogProbReference, {-1, -2.5, -4}}}),
                 chain({{Column::LogProbOld, {-1}}, {Column::LogProbReference, {-0.5}}})}}};
  EXPECT_NEAR(*kl_to_reference(trajectories(groups)), (0.5 - 0.5) / 2, 1e-12);
  groups[0].trees[1].leaves[0].outcome = Outcome::InfraFailed;
  EXPECT_NEAR(*kl_to_reference(trajectories(groups)), 0.5, 1e-12);
  groups[0].trees[0].leaves[0].dropped = true;
  EXPECT_FALSE(kl_to_reference(trajectories(groups)));
}

TEST(StepMetrics, OfUpdatesAreBitwiseEqualWhenAbsentMembersAreRemoved) {
  RandomStream random(4);
  int absent = 0;
  for (int trial = 0; trial < 50; ++trial) {
    const std::vector<Group> groups =
        random_groups(random, {.invalid_share = 0.3, .dropped_share = 0.2, .columns = testing::all_columns()});
    const std::vector<Group> present = testing::without_absent_members(groups);
    absent += testing::absent_members(groups);
    const auto all = trajectories(groups), counting = trajectories(present);
    const CreditTable credit = testing::random_credit(random, groups);
    CreditTable counting_credit;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].leaf().is_included()) counting_credit.push_back(credit[i]);
    EXPECT_EQ(credit_metrics(all, credit), credit_metrics(counting, counting_credit));
    EXPECT_EQ(mismatch_metrics(all, 2), mismatch_metrics(counting, 2));
    EXPECT_EQ(kl_to_reference(all), kl_to_reference(counting));
  }
  EXPECT_GT(absent, 20);
}

TEST(StepMetrics, CountToolCallsThatFail) {
  std::vector<Group> groups(1);
  Tree& tree = groups[0].trees.emplace_back();
  for (const char* status : {"ok", "empty", "timeout", ""}) {
    Turn& turn = tree.turns.emplace_back();
    turn.parent = static_cast<int>(tree.turns.size()) - 2;
    turn.tool = "search";
    turn.status = status;
  }
  tree.turns.emplace_back().parent = 3;
  tree.leaves.push_back({.turn = 4});
  EXPECT_EQ(trajectory_metrics(trajectories(groups), "maze").at("tool_call_errors"), 0.25);
  for (Turn& turn : tree.turns) turn.tool.clear();
  EXPECT_FALSE(trajectory_metrics(trajectories(groups), "maze").contains("tool_call_errors"));
}

TEST(StepMetrics, CountGroupsThatRepeatATask) {
  std::vector<Group> groups(4);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    Turn& first = groups[g].trees.emplace_back().turns.emplace_back();
    first.tokens = {1, 2, static_cast<TokenId>(3 + g)};
    first.sampled_begin = 2;
    first.sampled_end = 3;
  }
  EXPECT_EQ(duplicate_tasks(groups), 0.75);
  groups[1].trees[0].turns[0].tokens[1] = 7;
  groups[2].ground_truth = {"yes"};
  EXPECT_EQ(duplicate_tasks(groups), 0.25);
  groups[3].info["level"] = "2";
  EXPECT_EQ(duplicate_tasks(groups), 0);
  EXPECT_EQ(duplicate_tasks({}), 0);
}

TEST(StepMetrics, OfUpdatesAreInTheManual) {
  const std::string manual = *read_file(source_path("docs/metrics.md"));
  RandomStream random(5);
  const std::vector<Group> groups = random_groups(random, {.columns = testing::all_columns()});
  const auto all = trajectories(groups);
  auto metrics = credit_metrics(all, testing::random_credit(random, groups));
  metrics.merge(mismatch_metrics(all, 2));
  EXPECT_EQ(metrics.size(), 22u);
  for (const auto& [name, value] : metrics) {
    const std::size_t spread = std::min({name.rfind("/mean"), name.rfind("/max"), name.rfind("/min")});
    const std::string listed = spread == std::string::npos ? name : name.substr(0, spread) + "/{mean,max,min}";
    EXPECT_NE(manual.find("| `" + listed + "` |"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace carnot
