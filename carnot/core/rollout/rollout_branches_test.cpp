#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "carnot/core/branch/balanced_branch.h"
#include "carnot/core/branch/branch.h"
#include "carnot/core/branch/entropy_branch.h"
#include "carnot/core/branch/tree_expand.h"
#include "testing/hang.h"
#include "testing/scripted_rollout.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

// Records every decision, and branches if the draw is below its rate.
class RecordingPolicy : public BranchPolicy {
 public:
  RecordingPolicy(int initial, double rate, BranchTiming timing, BranchStreak streak = BranchStreak::Trajectory)
      : initial_(initial), rate_(rate), timing_(timing), streak_(streak) {}

  std::string name() const override { return "recording"; }
  int initial(int budget) const override { return std::min(initial_, budget); }
  bool branch_here(const BranchContext& at) const override {
    asked.push_back(at);
    return at.uniform < rate_;
  }
  BranchTiming timing() const override { return timing_; }
  BranchStreak streak() const override { return streak_; }
  TurnEntropyMeasure measure() const override { return {.tokens = 4}; }

  mutable std::vector<BranchContext> asked;

 private:
  int initial_;
  double rate_;
  BranchTiming timing_;
  BranchStreak streak_;
};

constexpr BranchTiming kTimings[] = {BranchTiming::AfterObservation, BranchTiming::SameTurn};

TEST(RolloutBranches, ABranchSharesItsParentsTurnsAndSamplesWhatAFreshTrajectoryWould) {
  for (const BranchTiming timing : kTimings) {
    const RecordingPolicy policy(2, 0.6, timing);
    RolloutSetting setting = with_budget(8);
    setting.num_states = timing == BranchTiming::SameTurn ? 5 : 0;
    const Rollout out = roll_out_scripted(scripted_tasks(3, {}), setting, policy);
    expect_sound(out);
    expect_tokens_of_the_reference(out);
    int shared = 0;
    for (const Group& group : out.groups) {
      EXPECT_EQ(leaves_of(group), 8);
      for (const Tree& tree : group.trees) {
        for (std::size_t i = 0; i < tree.leaves.size(); ++i) {
          const Leaf& leaf = tree.leaves[i];
          EXPECT_EQ(leaf.outcome, Outcome::Finished);
          EXPECT_EQ(leaf.measures.at("turns"), 4) << "the environment was cloned with its count of turns";
          if (leaf.parent < 0) continue;
          ++shared;
          const std::vector<int> own = path(tree, static_cast<int>(i)), parents = path(tree, leaf.parent);
          const auto turns = static_cast<std::size_t>(leaf.branch_turn);
          ASSERT_GT(leaf.branch_turn, 0);
          EXPECT_TRUE(std::equal(own.begin(), own.begin() + leaf.branch_turn, parents.begin()));
          EXPECT_NE(own.at(turns), parents.at(turns));
        }
      }
    }
    EXPECT_EQ(out.metrics.branches, shared);
    EXPECT_GT(shared, 6);
  }
}

TEST(RolloutBranches, DecisionsDoNotDependOnBatchSizeThreadsLatencyOrMemory) {
  for (const BranchTiming timing : kTimings) {
    const std::string expected =
        described(roll_out_scripted(scripted_tasks(3, {}), with_budget(7), RecordingPolicy(3, 0.5, timing)));
    for (int variant = 1; variant <= 5; ++variant) {
      RolloutSetting setting = with_budget(7);
      setting.max_batch_tokens = std::array{3, 50, 300, 300, 50}[variant - 1];
      setting.num_states = std::array{0, 0, 0, 2, 30}[variant - 1];
      setting.kernel_threads = variant;
      setting.options.environment_threads = 6 - variant;
      setting.num_blocks = variant == 3 ? 25 : 1000;
      const auto tasks = scripted_tasks(3, {.latency_seed = static_cast<std::uint64_t>(variant)});
      EXPECT_EQ(described(roll_out_scripted(tasks, setting, RecordingPolicy(3, 0.5, timing))), expected)
          << "variant " << variant;
    }
  }
}

TEST(RolloutBranches, DecidesInTheOrderOfTheTrajectoriesWithTheCountsSoFar) {
  for (const BranchTiming timing : kTimings) {
    const RecordingPolicy policy(3, 1, timing);
    const Rollout out = roll_out_scripted(scripted_tasks(1, {}), with_budget(5), policy);
    ASSERT_EQ(policy.asked.size(), 2u) << "two branches spend the budget";
    EXPECT_EQ(policy.asked[0].trajectories, 3);
    EXPECT_EQ(policy.asked[1].trajectories, 4);
    EXPECT_NE(policy.asked[0].uniform, policy.asked[1].uniform);
    const Group& group = out.groups[0];
    ASSERT_EQ(group.trees.size(), 3u);
    EXPECT_EQ(group.trees[0].leaves[1].sibling, 3);
    EXPECT_EQ(group.trees[1].leaves[1].sibling, 4);
    EXPECT_EQ(group.trees[0].leaves[1].branch_turn, 1) << "the first place after an observation";
  }
}

TEST(RolloutBranches, TheEntropyThatDecidesIsThatOfTheFirstTokens) {
  const RecordingPolicy ahead(1, 0, BranchTiming::AfterObservation), after(1, 0, BranchTiming::SameTurn);
  const Rollout out = roll_out_scripted(scripted_tasks(1, {}), with_budget(2), ahead);
  roll_out_scripted(scripted_tasks(1, {}), with_budget(2), after);
  const Tree& tree = out.groups[0].trees[0];
  std::vector<double> expected;
  for (std::size_t t = 0; t < tree.turns.size(); ++t) {
    const Turn& turn = tree.turns[t];
    const auto& column = tree.columns.turn(Column::EntropyRollout, static_cast<int>(t));
    const std::vector<double> sampled(column.begin() + turn.sampled_begin, column.begin() + turn.sampled_end);
    expected.push_back(turn_entropy(sampled, 4, small_tokenizer().vocab_size()));
    EXPECT_EQ(turn.turn_entropy, expected.back());
  }
  ASSERT_GE(ahead.asked.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ahead.asked[i].turn_entropy, expected[i + 1]) << "of the turn after the observation";
    EXPECT_EQ(after.asked[i].turn_entropy, expected[i]) << "of the turn before the observation";
    EXPECT_EQ(ahead.asked[i].initial_entropy, expected[0]);
  }
}

TEST(RolloutBranches, CountsConsecutiveBranchesAsThePolicyAsks) {
  const RecordingPolicy trajectory(2, 1, BranchTiming::SameTurn, BranchStreak::Trajectory);
  roll_out_scripted(scripted_tasks(1, {}), with_budget(9), trajectory);
  std::vector<int> counts;
  for (const BranchContext& at : trajectory.asked) counts.push_back(at.consecutive);
  EXPECT_THAT(counts, ::testing::ElementsAre(0, 0, 1, 1, 1, 1, 2)) << "a branch starts with its parent's count";
  const RecordingPolicy task(2, 1, BranchTiming::SameTurn, BranchStreak::Task);
  roll_out_scripted(scripted_tasks(1, {}), with_budget(6), task);
  counts.clear();
  for (const BranchContext& at : task.asked) counts.push_back(at.consecutive);
  EXPECT_THAT(counts, ::testing::ElementsAre(0, 1, 2, 3));
}

TEST(RolloutBranches, TheBudgetThatBranchesLeaveStartsFromThePrompt) {
  const RecordingPolicy policy(2, 0, BranchTiming::AfterObservation);
  const Rollout out = roll_out_scripted(scripted_tasks(2, {}), with_budget(5), policy);
  for (const Group& group : out.groups) EXPECT_EQ(group.trees.size(), 5u);
  EXPECT_EQ(out.metrics.branches, 0);
}

TEST(RolloutBranches, AFailingEnvironmentDoesNotHoldItsGroupBack) {
  std::vector<RolloutTask> tasks = scripted_tasks(2, {});
  tasks[0] = scripted_tasks(1, {.throws_at = 2})[0];
  const Rollout out = roll_out_scripted(tasks, with_budget(6), RecordingPolicy(2, 0.5, BranchTiming::AfterObservation));
  expect_sound(out);
  EXPECT_EQ(leaves_of(out.groups[0]), 6);
  EXPECT_EQ(out.metrics.infra_failures, 6);
  EXPECT_EQ(leaves_of(out.groups[1]), 6);
}

TEST(RolloutBranches, ThePoliciesOfArpoAndAepoSpendTheWholeBudget) {
  std::vector<std::unique_ptr<BranchPolicy>> policies;
  policies.push_back(entropy_branch({.initial = 2}));
  policies.push_back(balanced_branch({.initial = 2}));
  BalancedBranchOptions published = published_balanced_branch();
  published.initial = 2;
  policies.push_back(balanced_branch(published));
  for (const auto& policy : policies) {
    const Rollout out = roll_out_scripted(scripted_tasks(3, {.max_response_tokens = 6}), with_budget(6), *policy);
    expect_sound(out);
    expect_tokens_of_the_reference(out);
    for (const Group& group : out.groups) EXPECT_EQ(leaves_of(group), 6);
    EXPECT_GT(out.metrics.branches, 0) << policy->name();
  }
}

TEST(RolloutBranches, AProbeDividesTheBudgetAndIsTheFirstTrajectory) {
  class Probing : public RecordingPolicy {
   public:
    Probing() : RecordingPolicy(0, 0, BranchTiming::AfterObservation) {}
    bool wants_probe() const override { return true; }
    using RecordingPolicy::initial;
    int initial(int, const EntropyProbe& probe) const override {
      probes.push_back(probe);
      return 3;
    }
    mutable std::vector<EntropyProbe> probes;
  };
  const Probing policy;
  const Rollout out = roll_out_scripted(scripted_tasks(1, {}), with_budget(4), policy);
  ASSERT_EQ(policy.probes.size(), 1u);
  const Tree& first = out.groups[0].trees[0];
  EXPECT_EQ(policy.probes[0].root, first.turns[0].turn_entropy);
  ASSERT_EQ(policy.probes[0].tool_calls.size(), 3u);
  EXPECT_EQ(policy.probes[0].tool_calls[2], first.turns[3].turn_entropy);
  EXPECT_EQ(out.groups[0].trees.size(), 4u) << "three from the probe's answer, the last one from the prompt";
  EXPECT_EQ(policy.asked.size(), 6u) << "the probe is not asked about, nor the trajectory that spends the budget";
}

TEST(RolloutBranches, TreesGrowFromRandomNodesAndAreCutBackToTheBudget) {
  const auto policy = tree_expand({.trees = 2, .nodes = 2, .rounds = 2});
  const Rollout out = roll_out_scripted(scripted_tasks(3, {}), with_budget(6), *policy);
  expect_sound(out);
  expect_tokens_of_the_reference(out);
  for (const Group& group : out.groups) {
    ASSERT_EQ(group.trees.size(), 2u);
    for (const Tree& tree : group.trees) {
      EXPECT_EQ(tree.leaves.size(), 5u) << "one chain and two rounds of two";
      EXPECT_EQ(std::ranges::count_if(tree.leaves, &Leaf::is_included), 3);
    }
  }
  const auto again = tree_expand({.trees = 2, .nodes = 2, .rounds = 2});
  RolloutSetting setting = with_budget(6);
  setting.max_batch_tokens = 7;
  setting.options.environment_threads = 3;
  setting.window = 20;
  for (const auto& [num_states, num_window_blocks] :
       std::vector<std::pair<int, int>>{{0, 0}, {4, 0}, {60, 0}, {0, 30}}) {
    setting.num_states = num_states;
    setting.num_window_blocks = num_window_blocks;
    const auto tasks = scripted_tasks(3, {.latency_seed = 4});
    EXPECT_EQ(described(roll_out_scripted(tasks, setting, *again)), described(out)) << num_states << " states";
  }
}

TEST(RolloutBranches, ANodeThatCannotBeCopiedFailsTheTrajectoryThatWouldGrowThere) {
  const auto policy = tree_expand({.trees = 2, .nodes = 3, .rounds = 1});
  std::vector<RolloutTask> tasks = scripted_tasks(2, {});
  // A trajectory's environment is copied for each node, and that where a tree grows.
  tasks[0] = scripted_tasks(2, {.before_copy = [](int generation, int) {
                              if (generation == 1) throw std::runtime_error("no copies");
                              return true;
                            }})[0];
  const Rollout healthy = roll_out_scripted(scripted_tasks(2, {}), with_budget(8), *policy);
  const Rollout out = roll_out_scripted(tasks, with_budget(8), *policy);
  expect_sound(out);
  EXPECT_GT(out.metrics.infra_failures, 0);
  EXPECT_EQ(leaves_of(out.groups[0]), leaves_of(healthy.groups[0]));
  for (const Tree& tree : out.groups[0].trees)
    for (const Leaf& leaf : tree.leaves)
      EXPECT_EQ(leaf.outcome, leaf.branch_turn > 0 ? Outcome::InfraFailed : Outcome::Finished);
  EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr("the environment could not be copied: no copies")));
  for (const Tree& tree : out.groups[1].trees)
    for (const Leaf& leaf : tree.leaves) EXPECT_EQ(leaf.outcome, Outcome::Finished);
}

TEST(RolloutBranches, IfACopyHangsItsOriginalIsNoLongerCalled) {
  for (const BranchTiming timing : kTimings) {
    const testing::Hang hang;
    std::vector<RolloutTask> tasks = scripted_tasks(2, {});
    tasks[0] = scripted_tasks(2, {.before_copy = [hang = hang.call()](int, int turn) {
                                if (turn == 2) hang();
                                return true;
                              }})[0];
    RolloutSetting setting = with_budget(6);
    setting.options.environment_timeout = 1;
    const Rollout out = roll_out_scripted(tasks, setting, RecordingPolicy(1, 0.5, timing));
    expect_sound(out);
    EXPECT_GT(out.metrics.infra_failures, 0);
    for (const Tree& tree : out.groups[1].trees)
      for (const Leaf& leaf : tree.leaves) EXPECT_EQ(leaf.outcome, Outcome::Finished);
  }
}

TEST(RolloutBranches, AnEnvironmentThatCannotBeCopiedIsNotBranchedAndContinues) {
  std::vector<RolloutTask> tasks = scripted_tasks(3, {});
  tasks[0] = scripted_tasks(3, {.before_copy = [](int, int) -> bool { throw std::runtime_error("no copies"); }})[0];
  tasks[1] = scripted_tasks(3, {.before_copy = [](int, int) { return false; }})[1];
  tasks[2] = scripted_tasks(3, {.branching = Branching::Refused})[2];
  const Rollout out = roll_out_scripted(tasks, with_budget(2), RecordingPolicy(1, 1, BranchTiming::AfterObservation));
  expect_sound(out);
  EXPECT_EQ(out.metrics.branches, 0);
  EXPECT_EQ(out.metrics.infra_failures, 0);
  const auto no_branch = [](const std::string& task, const std::string& why) {
    return ::testing::AllOf(::testing::StartsWith(task), ::testing::HasSubstr("no branch, the environment could not be "
                                                                              "copied: " +
                                                                              why));
  };
  EXPECT_THAT(out.failures, ::testing::Contains(no_branch("task-0", "no copies")));
  EXPECT_THAT(out.failures, ::testing::Contains(no_branch("task-1", "clone() returned none")));
  EXPECT_THAT(out.failures, ::testing::Contains(no_branch("task-2", "it can be neither cloned nor replayed")));
}

TEST(RolloutBranches, ACopyThatHangsCostsItsDeadlineOnce) {
  const testing::Hang hang;
  std::vector<RolloutTask> tasks = scripted_tasks(2, {});
  tasks[0] = scripted_tasks(2, {.before_copy = [hang = hang.call()](int, int) {
                              hang();
                              return true;
                            }})[0];
  RolloutSetting setting = with_budget(8);
  setting.options.environment_timeout = 0.2;
  const Rollout out = roll_out_scripted(tasks, setting, RecordingPolicy(4, 1, BranchTiming::AfterObservation));
  EXPECT_GT(out.metrics.infra_failures, 0);
  EXPECT_LT(hang.begun(), 8) << "not once for each trajectory of the budget";
}

TEST(RolloutBranches, ACopyThatHangsDoesNotHoldBackAStop) {
  struct Stop {
    std::mutex mutex;
    std::condition_variable changed;
    bool copying = false, returned = false, too_late = false;
  };
  const auto stop = std::make_shared<Stop>();
  const auto hang = [stop](int, int) {
    std::unique_lock lock(stop->mutex);
    stop->copying = true;
    stop->too_late = !stop->changed.wait_for(lock, std::chrono::seconds(20), [&] { return stop->returned; });
    return true;
  };
  const auto go_on = [&] {
    const std::lock_guard lock(stop->mutex);
    return !stop->copying;
  };
  HashRunner model(small_tokenizer().vocab_size(), 2000);
  Engine engine(model, {});
  const Rollout out =
      roll_out(engine, small_chat(), RecordingPolicy(1, 1, BranchTiming::AfterObservation),
               scripted_tasks(1, {.before_copy = hang}), with_budget(4).options, kRolloutKey, {.go_on = go_on});
  const std::lock_guard lock(stop->mutex);
  stop->returned = true;
  stop->changed.notify_all();
  EXPECT_TRUE(stop->copying);
  EXPECT_FALSE(stop->too_late) << "the stop waited for the copy";
  EXPECT_TRUE(out.stopped);
  EXPECT_EQ(engine.free_blocks(), 2000);
}

TEST(RolloutBranches, ABugInACopyEndsTheRollout) {
  const std::vector<RolloutTask> tasks = scripted_tasks(1, {.before_copy = [](int, int) -> bool {
                                                          CARNOT_CHECK(false, "copied at its start");
                                                          return true;
                                                        }});
  EXPECT_THROW(roll_out_scripted(tasks, with_budget(2), RecordingPolicy(1, 1, BranchTiming::AfterObservation)),
               CheckError);
}

TEST(RolloutBranches, AReplayedEnvironmentBranchesAsAClonedOneDoes) {
  std::vector<std::unique_ptr<BranchPolicy>> policies;
  for (const BranchTiming timing : kTimings) policies.push_back(std::make_unique<RecordingPolicy>(2, 0.6, timing));
  policies.push_back(tree_expand({.trees = 2, .nodes = 2, .rounds = 2}));
  for (const auto& policy : policies) {
    const Rollout cloned = roll_out_scripted(scripted_tasks(3, {}), with_budget(6), *policy);
    EXPECT_GT(cloned.metrics.branches, 0);
    const Rollout replayed =
        roll_out_scripted(scripted_tasks(3, {.branching = Branching::Replayed}), with_budget(6), *policy);
    EXPECT_EQ(replayed.metrics.infra_failures, 0);
    EXPECT_EQ(described(replayed), described(cloned)) << policy->name();
  }
}

TEST(RolloutBranches, AnEnvironmentThatAnswersDifferentlyWhenReplayedIsNotBranched) {
  const auto counter = std::make_shared<std::atomic<int>>(0);
  const std::vector<RolloutTask> tasks =
      scripted_tasks(1, {.change = [counter](int, Reply& reply) { reply.text += std::to_string((*counter)++); },
                         .branching = Branching::Replayed});
  const Rollout out = roll_out_scripted(tasks, with_budget(3), RecordingPolicy(1, 1, BranchTiming::AfterObservation));
  EXPECT_EQ(out.metrics.branches, 0);
  EXPECT_THAT(out.failures, ::testing::Contains(::testing::HasSubstr("played again, turn 0 is answered otherwise")));
}

TEST(RolloutBranches, TurnsWithFreshPromptsBranchAndGrowTrees) {
  const auto fresh = [](int turn, Reply& reply) {
    if (reply.done || turn % 2 == 0) return;  // every other turn continues its context
    reply.form = ReplyForm::FreshPrompt;
    reply.prompt = {.user = "go on from " + reply.text};
  };
  std::vector<std::unique_ptr<BranchPolicy>> policies;
  for (const BranchTiming timing : kTimings) policies.push_back(std::make_unique<RecordingPolicy>(2, 0.6, timing));
  policies.push_back(tree_expand({.trees = 2, .nodes = 2, .rounds = 2}));
  for (const auto& policy : policies) {
    RolloutSetting setting = with_budget(6);
    setting.num_states = policy == policies.front() ? 0 : 4;
    const Rollout out = roll_out_scripted(scripted_tasks(3, {.change = fresh}), setting, *policy);
    expect_sound(out);
    expect_tokens_of_the_reference(out);
    EXPECT_EQ(out.metrics.infra_failures, 0);
    EXPECT_GT(out.metrics.branches, 0);
    int mixed = 0;
    for (const Trajectory& one : trajectories(out.groups)) {
      EXPECT_EQ(one.turn(1).context, Context::Fresh);
      EXPECT_EQ(one.turn(2).context, Context::Growing);
      mixed += one.leaf().branch_turn > 1 ? 1 : 0;
    }
    EXPECT_GT(mixed, 0) << "branches after a fresh prompt";
  }
}

}  // namespace
}  // namespace carnot
