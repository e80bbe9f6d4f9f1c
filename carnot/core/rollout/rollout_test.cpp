#include "carnot/core/rollout/rollout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "carnot/core/branch/branch.h"
#include "carnot/core/branch/tree_expand.h"
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
  EXPECT_EQ(out.metrics.environment_calls, 12 + 48) << "each trajectory opens its own environment";
}

TEST(Rollout, SamplesWhatADecoderWithoutACacheWould) {
  for (const ReplyForm form : {ReplyForm::UserMessage, ReplyForm::Inline}) {
    for (const int num_states : {0, 3, 100}) {
      RolloutSetting setting = with_budget(3);
      setting.num_states = num_states;
      setting.options.sampling.temperature = 0.7;
      expect_tokens_of_the_reference(roll_out_scripted(scripted_tasks(3, {.form = form}), setting), 0.7);
    }
  }
}

TEST(Rollout, TokensDoNotDependOnBatchSizeThreadsLatencyOrMemory) {
  const std::string expected = described(roll_out_scripted(scripted_tasks(4, {}), with_budget(4)));
  for (int variant = 1; variant <= 9; ++variant) {
    RolloutSetting setting = with_budget(4);
    setting.max_batch_tokens = std::array{1, 9, 64, 300, 64, 300, 9, 9, 300}[variant - 1];
    setting.num_states = std::array{0, 0, 0, 0, 1, 6, 40, 0, 0}[variant - 1];
    setting.num_window_blocks = std::array{0, 0, 0, 0, 0, 0, 0, 6, 40}[variant - 1];
    setting.window = 25;
    setting.kernel_threads = 1 + variant % 2;
    setting.options.environment_threads = variant;
    setting.num_blocks = variant == 4 ? 25 : 2000;
    const auto tasks = scripted_tasks(4, {.latency_seed = static_cast<std::uint64_t>(variant)});
    EXPECT_EQ(described(roll_out_scripted(tasks, setting)), expected) << "variant " << variant;
  }
}

TEST(Rollout, PrefillsATasksPromptOnce) {
  for (const int num_states : {0, 9}) {  // one of each trajectory, and the prompt's
    RolloutSetting setting = with_budget(8);
    setting.num_states = num_states;
    const Rollout out = roll_out_scripted(scripted_tasks(1, {.turns = 1}), setting);
    const Turn& turn = out.groups[0].trees[0].turns[0];
    EXPECT_EQ(out.metrics.computed_rows, turn.sampled_begin - 1 + out.metrics.sampled_tokens);
  }
}

TEST(Rollout, MarksWhatWasSampledAndWhatCameFromElsewhere) {
  const Rollout out = roll_out_scripted(scripted_tasks(1, {}), with_budget(1));
  const Turn& first = out.groups[0].trees[0].turns[0];
  const Tokenizer& tokenizer = small_tokenizer();
  EXPECT_EQ(
      tokenizer.decode(std::span(first.tokens).first(first.sampled_begin)),
      "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\ntask 0<|im_end|>\n<|im_start|>assistant\n<think>");
  const std::string after = tokenizer.decode(std::span(first.tokens).subspan(first.sampled_end));
  EXPECT_THAT(after, ::testing::HasSubstr("<|im_start|>user\nheard "));
  EXPECT_THAT(after, ::testing::EndsWith("<|im_start|>assistant\n<think>"));
  const Columns& columns = out.groups[0].trees[0].columns;
  for (std::size_t i = 0; i < first.tokens.size(); ++i) {
    const bool sampled = static_cast<int>(i) >= first.sampled_begin && static_cast<int>(i) < first.sampled_end;
    EXPECT_EQ(std::isfinite(columns.turn(Column::LogProbRollout, 0)[i]), sampled);
  }
  EXPECT_EQ(out.groups[0].trees[0].turns.back().tokens.size(),
            static_cast<std::size_t>(out.groups[0].trees[0].turns.back().sampled_end))
      << "nothing follows the last response";
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

TEST(Rollout, APromptThatFillsTheContextStartsNoResponse) {
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

/// A task whose n-th environment is made with the n-th seed.
RolloutTask task_of_seeds(std::vector<std::uint64_t> seeds, const ScriptedOptions& options = {}) {
  const auto made = std::make_shared<std::atomic<std::size_t>>(0);
  return {.uid = "task-0", .make = [seeds = std::move(seeds), made, options] {
            const std::size_t number = (*made)++;
            return std::make_unique<ScriptedEnvironment>(options, seeds.at(number));
          }};
}

TEST(Rollout, EverySiblingHasItsOwnEnvironmentAndNothingIsCopied) {
  std::vector<RolloutTask> tasks = scripted_tasks(1, {});
  tasks[0] =
      task_of_seeds({0, 0, 0, 0, 0}, {.before_copy = [](int, int) -> bool { throw std::runtime_error("no copies"); }});
  const Rollout out = roll_out_scripted(tasks, with_budget(5));
  EXPECT_EQ(out.metrics.infra_failures, 0);
  EXPECT_EQ(described(out), described(roll_out_scripted(scripted_tasks(1, {}), with_budget(5))));
}

TEST(Rollout, ASiblingThatOpensDifferentlyContinuesItsOwnPrompt) {
  const std::vector<RolloutTask> tasks{task_of_seeds({0, 7, 0, 9})};
  RolloutSetting one_thread = with_budget(4);
  one_thread.options.environment_threads = 1;  // environments are made in the order of the trajectories
  const Rollout out = roll_out_scripted(tasks, one_thread);
  expect_sound(out);
  expect_tokens_of_the_reference(out);
  std::vector<std::string> prompts;
  for (const Trajectory& one : trajectories(out.groups))
    prompts.push_back(small_tokenizer().decode(std::span(one.turn(0).tokens).first(one.turn(0).sampled_begin)));
  for (const std::size_t other : {1, 3}) {
    EXPECT_NE(prompts[other], prompts[0]);
    EXPECT_THAT(prompts[other], ::testing::HasSubstr(other == 1 ? "task 7" : "task 9"));
  }
  EXPECT_EQ(prompts[2], prompts[0]);
}

TEST(Rollout, ASiblingWhoseEnvironmentCannotBeMadeFailsAlone) {
  const std::vector<RolloutTask> tasks{task_of_seeds({0, 0})};  // the third is one too many
  RolloutSetting one_thread = with_budget(3);
  one_thread.options.environment_threads = 1;  // the last trajectory's is made last
  const Rollout out = roll_out_scripted(tasks, one_thread);
  expect_sound(out);
  EXPECT_EQ(out.metrics.infra_failures, 1);
  ASSERT_EQ(out.failures.size(), 1u);
  EXPECT_THAT(out.failures[0], ::testing::StartsWith("task-0, trajectory 2, turn 0: "));
}

/// A reply with its own prompt, as from agents that edit their history.
void answer_with_fresh_prompt(int turn, Reply& reply) {
  if (reply.done) return;
  reply.form = ReplyForm::FreshPrompt;
  reply.prompt = {.system = "be brief",
                  .history = {{.role = "user", .content = "turn " + std::to_string(turn)},
                              {.role = "assistant", .content = "I look"}},
                  .user = reply.text,
                  .assistant_prefix = turn % 2 == 0 ? "<think>" : ""};
}

TEST(Rollout, AFreshPromptBeginsANewContext) {
  const std::vector<RolloutTask> tasks = scripted_tasks(3, {.change = answer_with_fresh_prompt});
  const Rollout out = roll_out_scripted(tasks, with_budget(3));
  expect_sound(out);
  expect_tokens_of_the_reference(out);
  for (const Trajectory& one : trajectories(out.groups)) {
    ASSERT_EQ(one.num_turns(), 4);
    EXPECT_EQ(one.turn(0).context, Context::Growing);
    for (int k = 1; k < 4; ++k) {
      const Turn& turn = one.turn(k);
      EXPECT_EQ(turn.context, Context::Fresh);
      const std::string prompt = small_tokenizer().decode(std::span(turn.tokens).first(turn.sampled_begin));
      EXPECT_THAT(prompt,
                  ::testing::HasSubstr("turn " + std::to_string(k) + "<|im_end|>\n<|im_start|>assistant\nI look"));
      EXPECT_TRUE(prompt.ends_with(k % 2 == 0 ? "assistant\n<think>" : "assistant\n")) << prompt;
      EXPECT_EQ(turn.sampled_end, static_cast<int>(turn.tokens.size())) << "the next prompt is the next turn's";
    }
  }
  RolloutSetting other = with_budget(3);
  other.max_batch_tokens = 7;
  other.num_blocks = 40;
  EXPECT_EQ(described(roll_out_scripted(tasks, other)), described(out));
}

TEST(Rollout, EachFreshPromptHasTheWholeContextToItself) {
  RolloutSetting setting = with_budget(2);
  setting.options.episode.max_context_tokens = 150;  // two turns of a growing trajectory
  const Rollout growing = roll_out_scripted(scripted_tasks(2, {}), setting);
  for (const Trajectory& one : trajectories(growing.groups)) EXPECT_EQ(one.leaf().outcome, Outcome::OutOfTokens);
  const Rollout fresh = roll_out_scripted(scripted_tasks(2, {.change = answer_with_fresh_prompt}), setting);
  for (const Trajectory& one : trajectories(fresh.groups)) EXPECT_EQ(one.leaf().outcome, Outcome::Finished);
  const auto endless = [](int turn, Reply& reply) {
    answer_with_fresh_prompt(turn, reply);
    if (turn == 2) reply.prompt.user = std::string(2000, 'x');
  };
  const Rollout cut = roll_out_scripted(scripted_tasks(2, {.change = endless}), setting);
  expect_sound(cut);
  for (const Trajectory& one : trajectories(cut.groups)) {
    EXPECT_EQ(one.leaf().outcome, Outcome::OutOfTokens);
    EXPECT_EQ(one.num_turns(), 2);
  }
}

TEST(Rollout, ToolResultsAreTheFormatsToolMessages) {
  const auto results = [](int, Reply& reply) {
    reply.form = ReplyForm::ToolResult;
    reply.results = {{.text = "first " + reply.text}, {.text = "second"}};
  };
  const std::vector<RolloutTask> tasks =
      scripted_tasks(2, {.change = results, .tools = {{.name = "look_up", .description = "Finds a word."}}});
  const Rollout out = roll_out_scripted(tasks, with_budget(2));
  expect_sound(out);
  expect_tokens_of_the_reference(out);
  for (const Trajectory& one : trajectories(out.groups)) {
    const std::string text = small_tokenizer().decode(one.tokens());
    EXPECT_THAT(text, ::testing::HasSubstr("\"name\": \"look_up\", \"description\": \"Finds a word.\""));
    EXPECT_THAT(text, ::testing::HasSubstr("<|im_start|>tool\nfirst heard "));
    EXPECT_THAT(text, ::testing::HasSubstr("<|im_start|>tool\nsecond<|im_end|>"));
  }
}

TEST(Rollout, ReportsHowManyTrajectoriesHaveEnded) {
  HashRunner model(small_tokenizer().vocab_size(), 2000);
  Engine engine(model, {});
  std::vector<std::int64_t> reported;
  roll_out(engine, small_chat(), *independent(), scripted_tasks(3, {}), with_budget(4).options, kRolloutKey,
           {.on_progress = [&](std::int64_t ended) { reported.push_back(ended); }});
  ASSERT_FALSE(reported.empty());
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  EXPECT_EQ(reported.back(), 12);
}

TEST(Rollout, StoppedAtAnyMomentLeavesNothingInTheEngine) {
  const auto chains = independent(), trees = tree_expand({.trees = 2, .nodes = 1, .rounds = 1});
  for (const BranchPolicy* policy : {chains.get(), trees.get()}) {
    HashRunner model(small_tokenizer().vocab_size(), 2000, 20);
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
      EXPECT_EQ(engine.free_states(), 20) << asks;
      EXPECT_FALSE(engine.has_work());
    }
    EXPECT_EQ(described(rolled_out({})), whole) << "the engine serves the next rollout as usual";
  }
}

}  // namespace
}  // namespace carnot
