#include "carnot/rollout/explore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/base/thread_pool.h"
#include "carnot/data/trajectory.h"
#include "reference/decoder.h"
#include "testing/hash_policy.h"
#include "testing/scripted_environment.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using testing::HashPolicy;
using testing::ScriptedEnvironment;
using testing::ScriptedOptions;
using testing::small_tokenizer;

const ChatFamily& chat() {
  static const std::unique_ptr<ChatFamily> family = make_chat_family("chatml", small_tokenizer()).value();
  return *family;
}

struct Setting {
  int num_blocks = 2000;
  int max_batch_tokens = 512;
  int kernel_threads = 1;
  ExploreOptions explore{};
};

std::vector<RolloutTask> tasks_of(int count, const ScriptedOptions& options) {
  std::vector<RolloutTask> tasks;
  for (int i = 0; i < count; ++i)
    tasks.push_back({.uid = "task-" + std::to_string(i), .task_index = i, .make = [options, i] {
                       return std::make_unique<ScriptedEnvironment>(options, static_cast<std::uint64_t>(i));
                     }});
  return tasks;
}

const ExploreKey kKey{.seed = 5, .step = 3, .first_group = 2, .policy_version = 9};

Exploration run(const std::vector<RolloutTask>& tasks, const Setting& setting = {},
                const BranchPolicy& policy = *independent()) {
  set_num_threads(setting.kernel_threads);
  HashPolicy model(small_tokenizer().vocab_size(), setting.num_blocks);
  Engine engine(model, {.max_batch_tokens = setting.max_batch_tokens});
  Exploration out = explore(engine, chat(), policy, tasks, setting.explore, kKey);
  EXPECT_EQ(engine.free_blocks(), setting.num_blocks) << "every sequence was released";
  EXPECT_FALSE(engine.has_work());
  set_num_threads(1);
  return out;
}

Setting setting_of(int budget) {
  Setting setting;
  setting.explore.budget = budget;
  return setting;
}

// Everything that may not depend on timing, as text.
std::string described(const Exploration& exploration) {
  std::ostringstream out;
  out.precision(17);
  for (const Group& group : exploration.groups) {
    out << "group " << group.uid << "\n";
    for (const Tree& tree : group.trees) {
      for (std::size_t t = 0; t < tree.turns.size(); ++t) {
        const Turn& turn = tree.turns[t];
        out << " turn of " << turn.parent << " anchor " << turn.anchor << " reward " << turn.reward << " entropy "
            << turn.turn_entropy.value_or(-1) << ":";
        for (TokenId token : turn.tokens) out << " " << token;
        for (double value : tree.columns.turn(Column::LogProbRollout, static_cast<int>(t))) out << " " << value;
        out << "\n";
      }
      for (const Leaf& leaf : tree.leaves)
        out << " leaf " << leaf.turn << " sibling " << leaf.sibling << " parent " << leaf.parent << "/" << leaf.branch_turn
            << " " << name_of(leaf.outcome) << " " << leaf.score << (leaf.dropped ? " dropped" : "") << "\n";
    }
  }
  return out.str();
}

// Every turn that a leaf's own trajectory sampled equals the twin's tokens behind the whole prefix, computed afresh.
void expect_tokens_of_the_twin(const Exploration& exploration, double temperature = 1) {
  const HashPolicy model(small_tokenizer().vocab_size(), 1);
  const std::vector<Trajectory> all = trajectories(exploration.groups);
  for (const Trajectory& trajectory : all) {
    const std::vector<TokenId> tokens = trajectory.tokens();
    const Leaf& leaf = trajectory.leaf();
    for (int k = std::max(0, leaf.branch_turn); k < trajectory.num_turns(); ++k) {
      const auto begin = trajectory.sampled_begin(k), end = trajectory.sampled_end(k);
      const auto expected = reference::decode(
          {.prompt = {tokens.begin(), tokens.begin() + begin},
           .key = {.seed = kKey.seed,
                   .step = static_cast<std::uint64_t>(kKey.step),
                   .group = kKey.first_group + static_cast<std::uint64_t>(trajectory.group_index),
                   .sibling = static_cast<std::uint64_t>(leaf.sibling),
                   .turn = static_cast<std::uint64_t>(k)},
           .temperature = temperature,
           .max_tokens = end - begin},
          [&](std::span<const TokenId> prefix) { return model.logits_behind(prefix); });
      const auto log_probs = trajectory.column(Column::LogProbRollout);
      const auto entropies = trajectory.column(Column::EntropyRollout);
      for (int i = begin; i < end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const reference::Draw& draw = expected[static_cast<std::size_t>(i - begin)];
        ASSERT_EQ(tokens[at], draw.token) << leaf.trajectory_id << " turn " << k << " token " << i - begin;
        EXPECT_NEAR(log_probs[at], draw.log_prob, 2e-5);
        EXPECT_NEAR(entropies[at], draw.entropy, 2e-5);
      }
    }
  }
}

void expect_sound(const Exploration& exploration) {
  for (const Group& group : exploration.groups)
    for (const Tree& tree : group.trees) EXPECT_THAT(violations(tree), ::testing::IsEmpty());
}

int leaves_of(const Group& group) {
  int leaves = 0;
  for (const Tree& tree : group.trees) leaves += static_cast<int>(tree.leaves.size());
  return leaves;
}

TEST(Explore, GivesEachTaskItsBudgetOfIndependentTrajectories) {
  const Exploration out = run(tasks_of(3, {}), setting_of(4));
  ASSERT_EQ(out.groups.size(), 3u);
  expect_sound(out);
  for (const Group& group : out.groups) {
    ASSERT_EQ(group.trees.size(), 4u);
    EXPECT_EQ(group.step, kKey.step);
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

TEST(Explore, SamplesWhatADecoderWithoutACacheWould) {
  for (const ReplyForm form : {ReplyForm::UserMessage, ReplyForm::Inline}) {
    Setting setting = setting_of(3);
    setting.explore.sampling.temperature = 0.7;
    expect_tokens_of_the_twin(run(tasks_of(3, {.form = form}), setting), 0.7);
  }
}

TEST(Explore, TokensDoNotDependOnBatchSizeThreadsLatencyOrMemory) {
  const std::string expected = described(run(tasks_of(4, {}), setting_of(4)));
  for (int variant = 1; variant <= 4; ++variant) {
    Setting setting = setting_of(4);
    setting.max_batch_tokens = std::array{1, 9, 64, 300}[static_cast<std::size_t>(variant - 1)];
    setting.kernel_threads = 1 + variant % 2;
    setting.explore.environment_threads = variant;
    setting.num_blocks = variant == 4 ? 25 : 2000;
    const auto tasks = tasks_of(4, {.latency_seed = static_cast<std::uint64_t>(variant)});
    EXPECT_EQ(described(run(tasks, setting)), expected) << "variant " << variant;
  }
}

TEST(Explore, PrefillsATasksPromptOnce) {
  const Exploration out = run(tasks_of(1, {.turns = 1}), setting_of(8));
  const Turn& turn = out.groups[0].trees[0].turns[0];
  EXPECT_EQ(out.metrics.computed_rows, turn.sampled_begin - 1 + out.metrics.sampled_tokens);
}

TEST(Explore, MarksWhatWasSampledAndWhereItCameFrom) {
  const Exploration out = run(tasks_of(1, {}), setting_of(1));
  const Turn& first = out.groups[0].trees[0].turns[0];
  const Tokenizer& tokenizer = small_tokenizer();
  EXPECT_EQ(tokenizer.decode(std::span(first.tokens).first(static_cast<std::size_t>(first.sampled_begin))),
            "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\ntask 0<|im_end|>\n<|im_start|>assistant\n<think>");
  const std::string behind = tokenizer.decode(std::span(first.tokens).subspan(static_cast<std::size_t>(first.sampled_end)));
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

TEST(Explore, AStopStringEndsTheResponseAndStaysInIt) {
  const Exploration out = run(tasks_of(6, {.max_response_tokens = 300, .stop_strings = {"z", "qj"}}), setting_of(4));
  int stopped = 0;
  for (const Trajectory& trajectory : trajectories(out.groups)) {
    for (int k = 0; k < trajectory.num_turns(); ++k) {
      const Turn& turn = trajectory.turn(k);
      const auto sampled = std::span(turn.tokens).subspan(static_cast<std::size_t>(turn.sampled_begin),
                                                          static_cast<std::size_t>(turn.num_sampled()));
      const std::string text = small_tokenizer().decode(sampled);
      const std::string before = small_tokenizer().decode(sampled.first(sampled.size() - 1));
      EXPECT_EQ(before.find('z'), std::string::npos);
      stopped += text.find('z') != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_GT(stopped, 20);
}

TEST(Explore, EndsTrajectoriesAtTheirLimits) {
  Setting turns = setting_of(2);
  turns.explore.episode.max_turns = 2;
  const Exploration short_of_turns = run(tasks_of(2, {}), turns);
  for (const Trajectory& trajectory : trajectories(short_of_turns.groups)) {
    EXPECT_EQ(trajectory.leaf().outcome, Outcome::OutOfTurns);
    EXPECT_EQ(trajectory.num_turns(), 2);
  }
  Setting tokens = setting_of(3);
  tokens.explore.episode.max_context_tokens = 120;
  const Exploration short_of_tokens = run(tasks_of(3, {}), tokens);
  for (const Trajectory& trajectory : trajectories(short_of_tokens.groups)) {
    EXPECT_EQ(trajectory.leaf().outcome, Outcome::OutOfTokens);
    EXPECT_LE(trajectory.num_tokens(), 120);
    EXPECT_GE(trajectory.num_turns(), 1);
  }
  Setting response = setting_of(1);
  response.explore.episode.max_response_tokens = 5;
  const Exploration brief = run(tasks_of(2, {}), response);
  for (const Trajectory& trajectory : trajectories(brief.groups))
    for (int k = 0; k < trajectory.num_turns(); ++k) EXPECT_LE(trajectory.turn(k).num_sampled(), 5);
}

TEST(Explore, AnEpisodeThatEndsInFailureOnACutResponseRanOutOfTokens) {
  const Exploration out = run(tasks_of(3, {.turns = 1, .max_response_tokens = 3, .succeeds = false}), setting_of(4));
  for (const Trajectory& trajectory : trajectories(out.groups)) {
    const Turn& turn = trajectory.turn(0);
    const TokenId last = turn.tokens[static_cast<std::size_t>(turn.sampled_end) - 1];
    const bool ended = small_tokenizer().bytes_of(last).find('z') != std::string_view::npos ||
                       last == chat().stop_tokens()[0] || last == chat().stop_tokens()[1];
    EXPECT_EQ(trajectory.leaf().outcome, turn.num_sampled() == 3 && !ended ? Outcome::OutOfTokens : Outcome::Finished);
  }
}

TEST(Explore, APromptThatFillsTheContextStartsNothing) {
  Setting setting = setting_of(3);
  setting.explore.episode.max_context_tokens = 10;
  const Exploration out = run(tasks_of(1, {}), setting);
  expect_sound(out);
  EXPECT_EQ(leaves_of(out.groups[0]), 3);
  for (const Trajectory& trajectory : trajectories(out.groups)) {
    EXPECT_EQ(trajectory.leaf().outcome, Outcome::OutOfTokens);
    EXPECT_EQ(trajectory.num_sampled(), 0);
  }
}

TEST(Explore, AnEnvironmentThatThrowsFailsItsOwnTrajectoriesOnly) {
  std::vector<RolloutTask> tasks = tasks_of(3, {});
  const Exploration healthy = run(tasks, setting_of(2));
  tasks[1] = tasks_of(3, {.throws_at = 1})[1];
  const Exploration out = run(tasks, setting_of(2));
  expect_sound(out);
  for (const Trajectory& trajectory : trajectories(out.groups)) {
    if (trajectory.group_index != 1) continue;
    EXPECT_EQ(trajectory.leaf().outcome, Outcome::InfraFailed);
    EXPECT_EQ(trajectory.num_turns(), 2);
    EXPECT_EQ(trajectory.turn(1).status, "infra_failed");
  }
  EXPECT_EQ(out.metrics.infra_failures, 2);
  EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr("the world broke")));
  Exploration others = healthy, kept = out;
  others.groups.erase(others.groups.begin() + 1);
  kept.groups.erase(kept.groups.begin() + 1);
  EXPECT_EQ(described(kept), described(others));
}

TEST(Explore, AnEnvironmentThatDoesNotOpenFailsItsWholeGroup) {
  std::vector<RolloutTask> tasks = tasks_of(2, {});
  tasks[0] = tasks_of(2, {.opens = false})[0];
  const Exploration out = run(tasks, setting_of(3));
  expect_sound(out);
  EXPECT_EQ(leaves_of(out.groups[0]), 3);
  EXPECT_EQ(out.metrics.infra_failures, 3);
  EXPECT_EQ(out.failures, std::vector<std::string>{"task-0: no such world"});
  EXPECT_EQ(out.groups[1].trees[0].leaves[0].outcome, Outcome::Finished);
}

TEST(Explore, AHangingEnvironmentCostsItsDeadlineAndNotTheRollout) {
  std::vector<RolloutTask> tasks = tasks_of(3, {});
  tasks[2] = tasks_of(3, {.hangs_at = 1, .hang_seconds = 3})[2];
  Setting setting = setting_of(2);
  setting.explore.environment_timeout = 0.1;
  setting.explore.environment_threads = 1;
  const Exploration out = run(tasks, setting);
  EXPECT_LT(out.metrics.seconds, 2);
  EXPECT_EQ(out.metrics.infra_failures, 2);
  EXPECT_THAT(out.failures, ::testing::Each(::testing::HasSubstr("no answer within")));
  for (std::size_t g = 0; g < 2; ++g)
    for (const Tree& tree : out.groups[g].trees) EXPECT_EQ(tree.leaves[0].outcome, Outcome::Finished);
}

TEST(Explore, ACacheThatCannotHoldOneTrajectoryIsAFailureOfTheMachinery) {
  Setting setting = setting_of(2);
  setting.num_blocks = 7;
  const Exploration out = run(tasks_of(1, {}), setting);
  expect_sound(out);
  EXPECT_EQ(out.metrics.infra_failures, 2);
  EXPECT_THAT(out.failures[0], ::testing::HasSubstr("does not fit into the KV cache"));
}

}  // namespace
}  // namespace carnot
