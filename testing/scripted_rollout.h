// testing/scripted_rollout.h -- rollouts of scripted environments under the hash policy, and what must hold of them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "carnot/core/base/thread_pool.h"
#include "carnot/core/branch/branch.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/rollout/rollout.h"
#include "carnot/core/text/chat_families.h"
#include "reference/decoder.h"
#include "testing/hash_runner.h"
#include "testing/scripted_environment.h"
#include "testing/small_tokenizer.h"

namespace carnot::testing {

inline const ChatFamily& small_chat() {
  static const std::unique_ptr<ChatFamily> family = make_chat_family("chatml", small_tokenizer()).value();
  return *family;
}

inline std::vector<RolloutTask> scripted_tasks(int count, const ScriptedOptions& options) {
  std::vector<RolloutTask> tasks;
  for (int i = 0; i < count; ++i)
    tasks.push_back({.uid = "task-" + std::to_string(i), .task_index = i, .make = [options, i] {
                       return std::make_unique<ScriptedEnvironment>(options, static_cast<std::uint64_t>(i));
                     }});
  return tasks;
}

struct RolloutSetting {
  int num_blocks = 2000;
  int num_states = 0;
  int num_window_blocks = 0, window = 0;
  int max_batch_tokens = 512;
  int kernel_threads = 1;
  RolloutOptions options{};
};

inline RolloutSetting with_budget(int budget) {
  RolloutSetting setting;
  setting.options.group_size = budget;
  return setting;
}

inline const RolloutKey kRolloutKey{.seed = 5, .step = 3, .first_group = 2, .policy_version = 9};

inline Rollout roll_out_scripted(const std::vector<RolloutTask>& tasks, const RolloutSetting& setting,
                                 const BranchPolicy& policy = *independent()) {
  set_num_threads(setting.kernel_threads);
  const CacheSize size{.blocks = setting.num_blocks,
                       .states = setting.num_states,
                       .window_blocks = setting.num_window_blocks,
                       .window = setting.window};
  HashRunner model(small_tokenizer().vocab_size(), size);
  Engine engine(model, {.max_batch_tokens = setting.max_batch_tokens});
  Rollout out = roll_out(engine, small_chat(), policy, tasks, setting.options, kRolloutKey);
  EXPECT_EQ(engine.free_blocks(), setting.num_blocks) << "every sequence was released";
  EXPECT_EQ(engine.free_states(), setting.num_states);
  EXPECT_EQ(engine.free_window_blocks(), setting.num_window_blocks);
  EXPECT_FALSE(engine.has_work());
  set_num_threads(1);
  return out;
}

/// Everything that must not depend on timing, as a string.
inline std::string described(const Rollout& rollout) {
  std::ostringstream out;
  out.precision(17);
  for (const Group& group : rollout.groups) {
    out << "group " << group.uid << "\n";
    for (const Tree& tree : group.trees) {
      out << "tree\n";
      for (std::size_t t = 0; t < tree.turns.size(); ++t) {
        const Turn& turn = tree.turns[t];
        out << (turn.context == Context::Fresh ? " fresh" : "") << " turn of " << turn.parent << " anchor "
            << turn.anchor << " reward " << turn.reward << " entropy " << turn.turn_entropy.value_or(-1) << ":";
        for (TokenId token : turn.tokens) out << " " << token;
        for (double value : tree.columns.turn(Column::LogProbRollout, static_cast<int>(t))) out << " " << value;
        out << "\n";
      }
      for (const Leaf& leaf : tree.leaves)
        out << " leaf " << leaf.turn << " sibling " << leaf.sibling << " parent " << leaf.parent << "/"
            << leaf.branch_turn << " " << name_of(leaf.outcome) << " " << leaf.score << (leaf.dropped ? " dropped" : "")
            << "\n";
    }
  }
  return out.str();
}

/// Every turn that a leaf's own trajectory sampled equals the reference implementation's tokens after the whole prefix,
/// computed from scratch.
inline void expect_tokens_of_the_reference(const Rollout& rollout, double temperature = 1) {
  const HashRunner model(small_tokenizer().vocab_size(), 1);
  for (const Trajectory& trajectory : trajectories(rollout.groups)) {
    const std::vector<TokenId> tokens = trajectory.tokens();
    const auto log_probs = trajectory.column(Column::LogProbRollout);
    const auto entropies = trajectory.column(Column::EntropyRollout);
    const Leaf& leaf = trajectory.leaf();
    for (int k = std::max(0, leaf.branch_turn); k < trajectory.num_turns(); ++k) {
      const int begin = trajectory.sampled_begin(k), end = trajectory.sampled_end(k);
      int first = k;  // turn of the context that this one samples in
      while (first > 0 && trajectory.turn(first).context != Context::Fresh) --first;
      const auto expected = reference::decode(
          {.prompt = {tokens.begin() + trajectory.turn_offsets[first], tokens.begin() + begin},
           .key = {.seed = kRolloutKey.seed,
                   .step = static_cast<std::uint64_t>(kRolloutKey.step),
                   .group = kRolloutKey.first_group + static_cast<std::uint64_t>(trajectory.group_index),
                   .sibling = static_cast<std::uint64_t>(leaf.sibling),
                   .turn = static_cast<std::uint64_t>(k)},
           .temperature = temperature,
           .max_tokens = end - begin},
          [&](std::span<const TokenId> prefix) { return model.logits_behind(prefix); });
      for (int i = begin; i < end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const reference::Draw& draw = expected[i - begin];
        ASSERT_EQ(tokens[at], draw.token) << leaf.trajectory_id << " turn " << k << " token " << i - begin;
        EXPECT_NEAR(log_probs[at], draw.log_prob, 2e-5);
        EXPECT_NEAR(entropies[at], draw.entropy, 2e-5);
      }
    }
  }
}

inline void expect_sound(const Rollout& rollout) {
  for (const Group& group : rollout.groups)
    for (const Tree& tree : group.trees) EXPECT_THAT(violations(tree), ::testing::IsEmpty());
}

inline int leaves_of(const Group& group) {
  int leaves = 0;
  for (const Tree& tree : group.trees) leaves += static_cast<int>(tree.leaves.size());
  return leaves;
}

}  // namespace carnot::testing
