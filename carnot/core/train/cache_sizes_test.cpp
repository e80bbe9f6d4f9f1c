// How many blocks and states the cache of a run's rollouts has.
#include <gtest/gtest.h>

#include <limits>

#include "carnot/core/base/kv_block.h"
#include "carnot/core/train/model_bundle.h"
#include "testing/scripted_rollout.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the rollouts of this test

TEST(CacheSizes, HaveRoomForAllTrajectoriesPromptsAndScoredAnswersAtOnce) {
  for (const bool scores : {false, true}) {
    RolloutSetting setting = with_budget(4);
    if (scores) setting.options.answer_scoring = AnswerScoring{};
    const auto states = static_cast<int>(cache_states({.options = setting.options}, 12));
    EXPECT_EQ(states, scores ? 27 : 15);
    setting.num_blocks = static_cast<int>(cache_blocks({.options = setting.options}, 12));
    setting.num_states = states;
    EXPECT_EQ(roll_out_scripted(scripted_tasks(3, {}), setting).metrics.evictions, 0);
    setting.num_states = 5;
    EXPECT_GT(roll_out_scripted(scripted_tasks(3, {}), setting).metrics.evictions, 0);
  }
}

TEST(CacheSizes, OfWindowsHaveRoomForWhatAllSequencesSee) {
  for (const bool scores : {false, true}) {
    RolloutSetting setting = with_budget(4);
    if (scores) setting.options.answer_scoring = AnswerScoring{};
    RolloutSettings options{.options = setting.options};
    options.engine.max_batch_tokens = setting.max_batch_tokens = 16;
    setting.num_blocks = static_cast<int>(cache_blocks(options, 12));
    ModelConfig model{.family = "gemma3_text", .window = setting.window = 7};
    setting.num_window_blocks = static_cast<int>(cache_window_blocks(options, model, 12));
    EXPECT_EQ(setting.num_window_blocks, (scores ? 27 : 15) * 4 + 2);
    EXPECT_EQ(roll_out_scripted(scripted_tasks(3, {}), setting).metrics.evictions, 0);
    setting.num_window_blocks = 5;
    EXPECT_GT(roll_out_scripted(scripted_tasks(3, {}), setting).metrics.evictions, 0);
    model.window = options.options.episode.max_context_tokens;
    EXPECT_EQ(cache_window_blocks(options, model, 12), 0) << "all blocks are no more";
    model.family = "llama";
    EXPECT_EQ(cache_window_blocks(options, model, 12), 0);
  }
}

TEST(CacheSizes, GrowNoFurtherThanNumbersDo) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(cache_blocks({}, kMost), kMost);
  EXPECT_EQ(cache_states({}, kMost), kMost);
  RolloutSettings few{.cache_tokens = 1};
  few.options.group_size = 1;
  few.options.answer_scoring = AnswerScoring{};
  EXPECT_EQ(cache_states(few, 8), cache_blocks(few, 8)) << "a sequence has a block, too";
}

}  // namespace
}  // namespace carnot
