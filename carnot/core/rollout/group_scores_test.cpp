// Last replies that an environment scores together, once a whole group has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <stdexcept>

#include "carnot/core/branch/tree_expand.h"
#include "testing/scripted_rollout.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

/// Leaves every last reply unscored; `score_group` scores it.
ScriptedOptions unscored(std::function<void(std::span<Reply>)> score_group) {
  return {.change =
              [](int, Reply& reply) {
                if (reply.done) reply = {.done = true, .unscored = "said"};
              },
          .score_group = std::move(score_group)};
}

void score_by_size(std::span<Reply> replies) {
  for (Reply& reply : replies) {
    reply.reward = 100 * static_cast<double>(replies.size());
    reply.success = true;
  }
}

TEST(GroupScores, AGroupsLastRepliesAreScoredInOneCallWhateverTheTiming) {
  std::mutex mutex;
  std::vector<std::size_t> sizes;
  ScriptedOptions options = unscored([&](std::span<Reply> replies) {
    const std::lock_guard lock(mutex);
    sizes.push_back(replies.size());
    score_by_size(replies);
  });
  const Rollout out = roll_out_scripted(scripted_tasks(3, options), with_budget(4));
  expect_sound(out);
  EXPECT_THAT(sizes, ::testing::ElementsAre(4, 4, 4));
  for (const Group& group : out.groups) {
    for (const Tree& tree : group.trees) {
      EXPECT_EQ(tree.turns.back().reward, 400);
      EXPECT_GE(tree.leaves[0].score, 400);
      EXPECT_TRUE(tree.leaves[0].success);
    }
  }
  options.latency_seed = 3;
  RolloutSetting setting = with_budget(4);
  setting.options.environment_threads = 3;
  EXPECT_EQ(described(roll_out_scripted(scripted_tasks(3, options), setting)), described(out));
}

TEST(GroupScores, GrownTreesAreScoredOnceTheyHaveAllTheirLeaves) {
  std::vector<std::size_t> sizes;
  const auto tasks = scripted_tasks(1, unscored([&](std::span<Reply> replies) {
                                      sizes.push_back(replies.size());
                                      score_by_size(replies);
                                    }));
  const auto policy = tree_expand({.trees = 2, .nodes = 2, .rounds = 2});
  const Rollout out = roll_out_scripted(tasks, with_budget(6), *policy);
  expect_sound(out);
  EXPECT_THAT(sizes, ::testing::ElementsAre(10)) << "two chains, and two rounds of two in each tree";
}

TEST(GroupScores, AReplyThatCannotBeScoredFailsItsTrajectoryAndAnExceptionFailsAll) {
  const auto one_bad = [](std::span<Reply> replies) {
    score_by_size(replies);
    replies[1].reward = 1e300;
    replies[2] = {.text = "no number", .done = true, .outcome = Outcome::InfraFailed};
  };
  const Rollout some = roll_out_scripted(scripted_tasks(1, unscored(one_bad)), with_budget(4));
  EXPECT_EQ(some.metrics.infra_failures, 2);
  EXPECT_THAT(some.failures, ::testing::ElementsAre(::testing::HasSubstr("reply.reward is 1e+300"),
                                                    ::testing::HasSubstr("no number")));
  const Rollout none = roll_out_scripted(
      scripted_tasks(1, unscored([](std::span<Reply>) { throw std::runtime_error("the grader left"); })),
      with_budget(4));
  EXPECT_EQ(none.metrics.infra_failures, 4);
  EXPECT_THAT(none.failures, ::testing::Each(::testing::HasSubstr("the grader left")));
}

}  // namespace
}  // namespace carnot
