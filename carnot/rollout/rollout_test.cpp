#include "carnot/rollout/rollout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "carnot/branch/tree_expand.h"
#include "testing/scripted_rollout.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

TEST(Rollout, GivesEachTaskItsBudgetOfIndependentTrajectories) {
  const Rollout out = roll_out_scripted(scripted_tasks(3, {}), with_budget(4));
  ASSERT_EQ(out.groups.size(), 3u);
  expect_sound(out);
  for (const Group& group : out.groups) {
    ASSERT_EQ(group.trees.size(), 4u);
    EXPECT_EQ(group.step, kRolloutKey.step);
    EXPECT_THAT(group.ground_truth, ::testing::ElementsAre("yes"));
    for (std::size_t i = 0; i < 4; ++i) {
      const Tree& tree = group.trees[i];
      ASSERT_EQ(tree.turns.size(), 4u);
      ASSERT_EQ(tree.leaves.size(), 1u);
      const Leaf& leaf = tree.leaves[0];
      EXPECT_EQ(leaf.outcome, Outcome::Finished);
      EXPECT_EQ(leaf.sibling, static_cast<int>(i));
      EXPECT_EQ(leaf.measures.at("turns"), 4);
      double score = 0;
      for (const Turn& turn : tree.turns) {
        score += turn.reward;
        EXPECT_EQ(turn.policy_version, 9);
        EXPECT_FALSE(turn.anchor.empty());
      }
      EXPECT_EQ(leaf.score, score);
    }
  }
  EXPECT_EQ(out.metrics.trajectories, 12);
  EXPECT_EQ(out.metrics.turns, 48);
  EXPECT_EQ(out.metrics.environment_calls, 3 + 48);
}

TEST(Rollout, SamplesWhatADecoderWithoutACacheWould) {
  for (const ReplyForm form : {ReplyForm::UserMessage, ReplyForm::Inline}) {
    RolloutSetting setting = with_budget(3);
    setting.options.sampling.temperature = 0.7;
    expect_tokens_of_the_twin(roll_out_scripted(scripted_tasks(3, {.form = form}), setting), 0.7);
  }
}

TEST(Rollout, TokensDoNotDependOnBatchSizeThreadsLatencyOrMemory) {
  const std::string expected = described(roll_out_scripted(scripted_tasks(4, {}), with_budget(4)));
  for (int variant = 1; variant <= 4; ++variant) {
    RolloutSetting setting = with_budget(4);
    setting.max_batch_tokens = std::array{1, 9, 64, 300}[variant - 1];
    setting.kernel_threads = 1 + variant % 2;
    setting.options.environment_threads = variant;
    setting.num_blocks = variant == 4 ? 25 : 2000;
    const auto tasks = scripted_tasks(4, {.latency_seed = static_cast<std::uint64_t>(variant)});
    EXPECT_EQ(described(roll_out_scripted(tasks, setting)), expected) << "variant " << variant;
  }
}

TEST(Rollout, PrefillsATasksPromptOnce) {
  const Rollout out = roll_out_scripted(scripted_tasks(1, {.turns = 1}), with_budget(8));
  const Turn& turn = out.groups[0].trees[0].turns[0];
  EXPECT_EQ(out.metrics.computed_rows, turn.sampled_begin - 1 + out.metrics.sampled_tokens);
}

TEST(Rollout, MarksWhatWasSampledAndWhereItCameFrom) {
  const Rollout out = roll_out_scripted(scripted_tasks(1, {}), with_budget(1));
  const Turn& first = out.groups[0].trees[0].turns[0];
  const Tokenizer& tokenizer = small_tokenizer();
  EXPECT_EQ(
      tokenizer.decode(std::span(first.tokens).first(first.sampled_begin)),
      "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\ntask 0<|im_end|>\n<|im_start|>assistant\n<think>");
  const std::string behind = tokenizer.decode(std::span(first.tokens).subspan(first.sampled_end));
  EXPECT_THAT(behind, ::testing::HasSubstr("<|im_start|>user\nheard "));
  EXPECT_THAT(behind, ::testing::EndsWith("<|im_start|>assistant\n<think>"));
  const Columns& columns = out.groups[0].trees[0].columns;
  for (std::size_t i = 0; i < first.tokens.size(); ++i) {
    const bool sampled = static_cast<int>(i) >= first.sampled_begin && static_cast<int>(i) < first.sampled_end;
    EXPECT_EQ(std::isfinite(columns.turn(Column::LogProbRollout, 0)[i]), sampled);
  }
  EXPECT_EQ(out.groups[0].trees[0].turns.back().tokens.size(),
            static_cast<std::size_t>(out.groups[0].trees[0].turns.back().sampled_end))
      << "nothing stands behind the last response";
}

TEST(Rollout, AStopStringEndsTheResponseAndStaysInIt) {
  const Rollout out =
      roll_out_scripted(scripted_tasks(6, {.max_response_tokens = 300, .stop_strings = {"z", "qj"}}), with_budget(4));
  int stopped = 0;
  for (const Trajectory& trajectory : trajectories(out.groups)) {
    for (int k = 0; k < trajectory.num_turns(); ++k) {
      const Turn& turn = trajectory.turn(k);
      const auto sampled = std::span(turn.tokens).subspan(turn.sampled_begin, turn.num_sampled());
      const std::string text = small_tokenizer().decode(sampled);
      const std::string before = small_tokenizer().decode(sampled.first(sampled.size() - 1));
      EXPECT_EQ(before.find('z'), std::string::npos);
      stopped += text.find('z') != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_GT(stopped, 20);
}

TEST(Rollout, EndsTrajectoriesAtTheirLimits) {
  RolloutSetting turns = with_budget(2);
  turns.options.episode.max_turns = 2;
  const Rollout short_of_turns = roll_out_scripted(scripted_tasks(2, {}), turns);
  for (const Trajectory& trajectory : trajectories(short_of_turns.groups)) {
    EXPECT_EQ(trajectory.leaf().outcome, Outcome::OutOfTurns);
    EXPECT_EQ(trajectory.num_turns(), 2);
  }
  RolloutSetting tokens = with_budget(3);
  tokens.options.episode.max_context_tokens = 120;
  const Rollout short_of_tokens = roll_out_scripted(scripted_tasks(3, {}), tokens);
  for (const Trajectory& trajectory : trajectories(short_of_tokens.groups)) {
    EXPECT_EQ(trajectory.leaf().outcome, Outcome::OutOfTokens);
    EXPECT_LE(trajectory.num_tokens(), 120);
    EXPECT_GE(trajectory.num_turns(), 1);
  }
  RolloutSetting response = with_budget(1);
  response.options.episode.max_response_tokens = 5;
  const Rollout brief = roll_out_scripted(scripted_tasks(2, {}), response);
  for (const Trajectory& trajectory : trajectories(brief.groups))
    for (int k = 0; k < trajectory.num_turns(); ++k) EXPECT_LE(trajectory.turn(k).num_sampled(), 5);
}

TEST(Rollout, AnEpisodeThatEndsInFailureOnACutResponseRanOutOfTokens) {
  const Rollout out =
      roll_out_scripted(scripted_tasks(3, {.turns = 1, .max_response_tokens = 3, .succeeds = false}), with_budget(4));
  for (const Trajectory& trajectory : trajectories(out.groups)) {
    const Turn& turn = trajectory.turn(0);
    const TokenId last = turn.tokens[static_cast<std::size_t>(turn.sampled_end) - 1];
    const bool ended = small_tokenizer().bytes_of(last).find('z') != std::string_view::npos ||
                       last == small_chat().stop_tokens()[0] || last == small_chat().stop_tokens()[1];
    EXPECT_EQ(trajectory.leaf().outcome, turn.num_sampled() == 3 && !ended ? Outcome::OutOfTokens : Outcome::Finished);
  }
}

TEST(Rollout, APromptThatFillsTheContextStartsNothing) {
  RolloutSetting setting = with_budget(3);
  setting.options.episode.max_context_tokens = 10;
  const Rollout out = roll_out_scripted(scripted_tasks(1, {}), setting);
  expect_sound(out);
  EXPECT_EQ(leaves_of(out.groups[0]), 3);
  for (const Trajectory& trajectory : trajectories(out.groups)) {
    EXPECT_EQ(trajectory.leaf().outcome, Outcome::OutOfTokens);
    EXPECT_EQ(trajectory.num_sampled(), 0);
  }
}

TEST(Rollout, AnEnvironmentThatThrowsFailsItsOwnTrajectoriesOnly) {
  std::vector<RolloutTask> tasks = scripted_tasks(3, {});
  const Rollout healthy = roll_out_scripted(tasks, with_budget(2));
  tasks[1] = scripted_tasks(3, {.throws_at = 1})[1];
  const Rollout out = roll_out_scripted(tasks, with_budget(2));
  expect_sound(out);
  for (const Trajectory& trajectory : trajectories(out.groups)) {
    if (trajectory.group_index != 1) continue;
    EXPECT_EQ(trajectory.leaf().outcome, Outcome::InfraFailed);
    EXPECT_EQ(trajectory.num_turns(), 2);
    EXPECT_EQ(trajectory.turn(1).status, "infra_failed");
  }
  EXPECT_EQ(out.metrics.infra_failures, 2);
  EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr("the world broke")));
  Rollout others = healthy, kept = out;
  others.groups.erase(others.groups.begin() + 1);
  kept.groups.erase(kept.groups.begin() + 1);
  EXPECT_EQ(described(kept), described(others));
}

TEST(Rollout, TellsOfFailuresInTheOrderOfTasksAndTrajectoriesWhicheverCameFirst) {
  std::vector<RolloutTask> tasks = scripted_tasks(2, {.throws_at = 3});
  tasks[1] = scripted_tasks(2, {.throws_at = 1})[1];
  const Rollout out = roll_out_scripted(tasks, with_budget(2));
  ASSERT_EQ(out.failures.size(), 4U);
  EXPECT_THAT(out.failures[0], ::testing::StartsWith("task-0, trajectory 0, turn 3"));
  EXPECT_THAT(out.failures[1], ::testing::StartsWith("task-0, trajectory 1, turn 3"));
  EXPECT_THAT(out.failures[2], ::testing::StartsWith("task-1, trajectory 0, turn 1"));
  EXPECT_THAT(out.failures[3], ::testing::StartsWith("task-1, trajectory 1, turn 1"));
}

TEST(Rollout, AnEnvironmentThatDoesNotOpenFailsItsWholeGroup) {
  std::vector<RolloutTask> tasks = scripted_tasks(2, {});
  tasks[0] = scripted_tasks(2, {.opens = false})[0];
  const Rollout out = roll_out_scripted(tasks, with_budget(3));
  expect_sound(out);
  EXPECT_EQ(leaves_of(out.groups[0]), 3);
  EXPECT_EQ(out.metrics.infra_failures, 3);
  EXPECT_EQ(out.failures, std::vector<std::string>{"task-0: no such world"});
  EXPECT_EQ(out.groups[1].trees[0].leaves[0].outcome, Outcome::Finished);
}

TEST(Rollout, AHangingEnvironmentCostsItsDeadlineAndNotTheRollout) {
  std::vector<RolloutTask> tasks = scripted_tasks(3, {});
  tasks[2] = scripted_tasks(3, {.hangs_at = 1, .hang_seconds = 3})[2];
  RolloutSetting setting = with_budget(2);
  setting.options.environment_timeout = 0.1;
  setting.options.environment_threads = 1;
  const Rollout out = roll_out_scripted(tasks, setting);
  EXPECT_LT(out.metrics.seconds, 2);
  EXPECT_EQ(out.metrics.infra_failures, 2);
  EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr("no answer within")));
  for (std::size_t g = 0; g < 2; ++g)
    for (const Tree& tree : out.groups[g].trees) EXPECT_EQ(tree.leaves[0].outcome, Outcome::Finished);
}

TEST(Rollout, AReplyOutOfBoundsFailsItsTrajectoryAndIsNoReward) {
  for (const double bad : {std::nan(""), HUGE_VAL, 1e308}) {
    std::vector<RolloutTask> tasks = scripted_tasks(2, {});
    tasks[1] = scripted_tasks(2, {.change = [bad](int turn, Reply& reply) {
                                if (turn == 2) reply.reward = bad;
                              }})[1];
    tasks[1].environment = "hash_world";
    const Rollout out = roll_out_scripted(tasks, with_budget(2));
    expect_sound(out);
    EXPECT_EQ(out.metrics.infra_failures, 2);
    for (const Trajectory& trajectory : trajectories(out.groups)) {
      EXPECT_EQ(trajectory.leaf().valid(), trajectory.group_index == 0);
      EXPECT_TRUE(std::isfinite(trajectory.leaf().score));
    }
    EXPECT_THAT(out.failures, ::testing::Each(::testing::StartsWith("task-1 (hash_world), trajectory ")));
    EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr(", turn 1: reply.reward is ")));
  }
}

TEST(Rollout, AReplyThatIsTooLongIsNotTokenised) {
  const auto tasks = scripted_tasks(1, {.change = [](int, Reply& reply) { reply.text.assign(30'000'000, 'x'); }});
  const Rollout out = roll_out_scripted(tasks, with_budget(2));
  EXPECT_EQ(out.metrics.infra_failures, 2);
  EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr("reply.text has 30000000 bytes")));
}

TEST(Rollout, ABugInAnEnvironmentEndsTheRolloutWithItsMessage) {
  const auto roll_out_with = [](const ScriptedOptions& options) {
    std::string message = "nothing was thrown";
    HashRunner model(small_tokenizer().vocab_size(), 2000);
    Engine engine(model, {});
    try {
      roll_out(engine, small_chat(), *independent(), scripted_tasks(2, options), with_budget(2).options, kRolloutKey);
    } catch (const CheckError& bug) {
      message = bug.what();
    }
    return message;
  };
  EXPECT_THAT(roll_out_with({.change = [](int turn, Reply&) { CARNOT_CHECK_LT(turn, 2); }}),
              ::testing::HasSubstr("check failed: turn < 2 (2 and 2)"));
  EXPECT_THAT(roll_out_with({.before_copy = [](int, int turn) -> bool {
                CARNOT_CHECK(turn > 0, "copied at its start");
                return true;
              }}),
              ::testing::HasSubstr("copied at its start"));
}

TEST(Rollout, AnEnvironmentThatCannotBeCopiedFailsItsOwnTrajectories) {
  std::vector<RolloutTask> tasks = scripted_tasks(3, {});
  tasks[0] = scripted_tasks(3, {.before_copy = [](int, int) -> bool { throw std::runtime_error("no twins"); }})[0];
  tasks[1] = scripted_tasks(3, {.before_copy = [](int, int) { return false; }})[1];
  const Rollout out = roll_out_scripted(tasks, with_budget(2));
  expect_sound(out);
  EXPECT_EQ(out.metrics.infra_failures, 4);
  EXPECT_THAT(out.failures,
              ::testing::UnorderedElementsAre(
                  "task-0, trajectory 0, turn 0: the environment could not be copied: no twins",
                  "task-0, trajectory 1, turn 0: the environment could not be copied: no twins",
                  "task-1, trajectory 0, turn 0: the environment could not be copied: clone() returned none",
                  "task-1, trajectory 1, turn 0: the environment could not be copied: clone() returned none"));
}

TEST(Rollout, ACopyThatHangsCostsItsDeadlineOnce) {
  std::vector<RolloutTask> tasks = scripted_tasks(2, {});
  tasks[0] = scripted_tasks(2, {.before_copy = [](int, int) {
                              std::this_thread::sleep_for(std::chrono::seconds(2));
                              return true;
                            }})[0];
  RolloutSetting setting = with_budget(8);
  setting.options.environment_timeout = 0.2;
  const Rollout out = roll_out_scripted(tasks, setting);
  EXPECT_EQ(out.metrics.infra_failures, 8);
  EXPECT_LT(out.metrics.seconds, 1.5) << "eight deadlines are 1.6 s";
}

TEST(Rollout, ACacheThatCannotHoldOneTrajectoryIsAFailureOfTheMachinery) {
  RolloutSetting setting = with_budget(2);
  setting.num_blocks = 7;
  const Rollout out = roll_out_scripted(scripted_tasks(1, {}), setting);
  expect_sound(out);
  EXPECT_EQ(out.metrics.infra_failures, 2);
  EXPECT_THAT(out.failures[0], ::testing::HasSubstr("does not fit into the KV cache"));
}

TEST(Rollout, TellsHowManyTrajectoriesHaveEnded) {
  HashRunner model(small_tokenizer().vocab_size(), 2000);
  Engine engine(model, {});
  std::vector<std::int64_t> told;
  roll_out(engine, small_chat(), *independent(), scripted_tasks(3, {}), with_budget(4).options, kRolloutKey,
           {.on_progress = [&](std::int64_t ended) { told.push_back(ended); }});
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back(), 12);
}

TEST(Rollout, StoppedAtAnyMomentLeavesNothingInTheEngine) {
  const auto chains = independent(), trees = tree_expand({.trees = 2, .nodes = 1, .rounds = 1});
  for (const BranchPolicy* policy : {chains.get(), trees.get()}) {
    HashRunner model(small_tokenizer().vocab_size(), 2000);
    Engine engine(model, {});
    const auto rolled_out = [&](const RolloutEvents& events) {
      return roll_out(engine, small_chat(), *policy, scripted_tasks(3, {}), with_budget(4).options, kRolloutKey,
                      events);
    };
    const std::string whole = described(rolled_out({}));
    for (const int asks : {0, 1, 5, 12, 20}) {
      int asked = 0;
      const Rollout out = rolled_out({.go_on = [&] { return asked++ < asks; }});
      EXPECT_TRUE(out.stopped) << asks;
      EXPECT_TRUE(out.groups.empty());
      EXPECT_EQ(engine.free_blocks(), 2000) << asks;
      EXPECT_FALSE(engine.has_work());
    }
    EXPECT_EQ(described(rolled_out({})), whole) << "the engine serves the next one as if nothing had been";
  }
}

}  // namespace
}  // namespace carnot
