// Blocks of layers with a window: given up, forked, enough for one sequence.
#include <gtest/gtest.h>

#include <algorithm>

#include "carnot/core/cache/block_table.h"

namespace carnot {
namespace {

TEST(WindowBlocks, GivesUpWhatNoRowToComeReads) {
  BlockManager pool({.blocks = 20, .window_blocks = 10, .window = 20});
  BlockTable table;
  append(pool, table, 5 * kBlockTokens);
  leave_behind(pool, table);
  // A row after 80 - 16 tokens sees 45 to 64. Runs of two blocks begin at multiples of 32.
  EXPECT_EQ(std::ranges::count(table.window_blocks, -1), 2);
  EXPECT_EQ(pool.window_blocks.num_free(), 7);
  EXPECT_EQ(pool.blocks.num_free(), 15) << "other layers see all";
  append(pool, table, 3 * kBlockTokens);
  leave_behind(pool, table);
  EXPECT_EQ(std::ranges::count(table.window_blocks, -1), 4);
  release(pool, table);
  EXPECT_EQ(pool.window_blocks.num_free(), 10);
}

TEST(WindowBlocks, ForksAndTruncatesOnlyWhereARowCanContinue) {
  BlockManager pool({.blocks = 20, .window_blocks = 10, .window = 20});
  BlockTable parent;
  append(pool, parent, 5 * kBlockTokens + 3);
  leave_behind(pool, parent);
  BlockTable near = fork(pool, parent, 4 * kBlockTokens + 3), far = fork(pool, parent, 3 * kBlockTokens);
  EXPECT_EQ(near.num_tokens, 4 * kBlockTokens + 3);
  EXPECT_EQ(near.window_blocks.size(), near.blocks.size());
  EXPECT_EQ(far.num_tokens, 0);
  truncate(pool, near, near.num_tokens - 1);
  EXPECT_GT(near.num_tokens, 0);
  truncate(pool, near, 2 * kBlockTokens);
  EXPECT_EQ(near.num_tokens, 0);
  release(pool, parent);
  EXPECT_EQ(pool.blocks.num_free(), 20);
  EXPECT_EQ(pool.window_blocks.num_free(), 10);
}

TEST(WindowBlocks, OneRowAtATimeGoesOnInTheBlocksOfOneSequence) {
  for (const int window : {1, 2, 15, 16, 17, 31, 32, 33, 100}) {
    const auto of_one = static_cast<int>(window_blocks_of_one(window));
    BlockManager pool({.blocks = 40, .window_blocks = of_one, .window = window});
    BlockTable table;
    for (int token = 0; token < 40 * kBlockTokens; ++token) {
      if (!fits(pool, table, 1)) leave_behind(pool, table);
      append(pool, table, 1);
    }
    EXPECT_EQ(window_blocks_for(window, 1, 0, 40), of_one + 1);
    EXPECT_EQ(window_blocks_for(window, 1, 0, of_one + 1), 0) << "no fewer than all";
  }
}

}  // namespace
}  // namespace carnot
