#include "carnot/core/credit/gae.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/group_advantage.h"
#include "testing/absent_members.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using ::testing::IsEmpty;

CreditTable credit_of(const GaeOptions& options, std::span<const Trajectory> all) {
  return run_credit(std::vector{gae(options)}, all);
}

/// Two turns of two sampled tokens with an observation of two tokens between them; reward 1 at the end.
std::vector<Group> published_case() {
  Tree tree;
  tree.turns.push_back({.tokens = {1, 2, 3, 4},
                        .sampled_begin = 0,
                        .sampled_end = 2,
                        .spans = {{SpanKind::Action, 0, 2}, {SpanKind::Observation, 2, 4}}});
  tree.turns.push_back(
      {.parent = 0, .tokens = {5, 6}, .sampled_begin = 0, .sampled_end = 2, .spans = {{SpanKind::Action, 0, 2}}});
  tree.leaves.push_back({.turn = 1, .score = 1});
  tree.columns.edit(Column::Value, 0, 4) = {.1, .2, 9.9, 9.9};
  tree.columns.edit(Column::Value, 1, 2) = {.3, .5};
  Group group;
  group.trees.push_back(tree);
  return {group};
}

void expect_sampled_near(const std::vector<double>& values, const std::vector<double>& expected) {
  for (std::size_t t : {0u, 1u, 4u, 5u}) EXPECT_NEAR(values[t], expected[t], 5e-7) << "token " << t;
}

TEST(Gae, GivesThePublishedVectors) {
  const auto groups = published_case();
  const auto all = trajectories(groups);
  const CreditTable raw = credit_of({.whiten = false}, all);
  expect_sampled_near(raw[0].advantage, {.9, .8, 0, 0, .7, .5});
  expect_sampled_near(raw[0].value_target, {1, 1, 0, 0, 1, 1});
  expect_sampled_near(credit_of({}, all)[0].advantage, {1.024695, .439155, 0, 0, -.146385, -1.317465});
  const GaeOptions discounted{.gamma = .99, .lambda = .95};
  expect_sampled_near(credit_of(discounted, all)[0].advantage, {.926871, .468724, 0, 0, -.009551, -1.386043});
}

TEST(Gae, EqualsItsDefinitionOnRandomGroups) {
  RandomStream random(5);
  int compared = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const auto groups = testing::random_groups(random, {.groups = 2, .columns = {Column::Value, Column::Reward}});
    const auto all = trajectories(groups);
    const GaeOptions options{.gamma = random.uniform(), .lambda = random.uniform(), .whiten = trial % 2 == 0};
    const CreditTable table = credit_of(options, all);
    const CreditTable fresh = fresh_credit(all);

    std::vector<double> expected, values, actual, targets;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!all[i].leaf().is_included()) continue;
      const auto sampled = all[i].sampled();
      const auto value = all[i].column(Column::Value);
      std::vector<double> r, v;
      for (std::size_t t = 0; t < sampled.size(); ++t) {
        if (!sampled[t]) continue;
        r.push_back(fresh[i].reward[t]);
        v.push_back(value[t]);
        actual.push_back(table[i].advantage[t]);
        targets.push_back(table[i].value_target[t]);
      }
      for (std::size_t t = 0; t < r.size(); ++t)
        expected.push_back(reference::gae(r, v, t, options.gamma, options.lambda));
      values.insert(values.end(), v.begin(), v.end());
    }
    for (std::size_t t = 0; t < expected.size(); ++t, ++compared) {
      ASSERT_NEAR(targets[t], expected[t] + values[t], 1e-9);
      ASSERT_NEAR(actual[t], options.whiten ? reference::whitened(expected, t) : expected[t], 1e-9);
    }
  }
  EXPECT_GT(compared, 20000);
}

TEST(Gae, IsUnmovedByMembersThatDoNotCount) {
  RandomStream random(6);
  for (int trial = 0; trial < 300; ++trial) {
    const auto groups =
        testing::random_groups(random, {.invalid_share = 0.3, .dropped_share = 0.3, .columns = {Column::Value}});
    ASSERT_THAT(testing::changes_by_absent_members(groups, [](auto all) { return credit_of({}, all); }), IsEmpty());
  }
}

}  // namespace
}  // namespace carnot
