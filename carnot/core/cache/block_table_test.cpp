#include "carnot/core/cache/block_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"

namespace carnot {
namespace {

TEST(SlotPool, HandsOutTheLowestSlotFirstAndTheLastFreedNext) {
  SlotPool pool(3);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  pool.release(0);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(SlotPool, KeepsASlotUntilItsLastHolderReleasesIt) {
  SlotPool pool(1);
  const std::int32_t slot = pool.take();
  pool.share(slot);
  pool.release(slot);
  EXPECT_EQ(pool.num_free(), 0);
  pool.release(slot);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(SlotPool, RefusesWhatWouldCorruptIt) {
  SlotPool pool(1);
  EXPECT_THROW(pool.release(0), CheckError);
  EXPECT_THROW(pool.share(0), CheckError);
  EXPECT_THROW(pool.release(7), CheckError);
  pool.take();
  EXPECT_THROW(pool.take(), CheckError);
}

TEST(BlockTable, FillsABlockBeforeItTakesTheNext) {
  BlockManager pool({.blocks = 4});
  BlockTable table;
  EXPECT_EQ(blocks_needed(pool, table, kBlockTokens), 1);
  EXPECT_FALSE(append(pool, table, kBlockTokens - 1).block);
  EXPECT_FALSE(append(pool, table, 1).block);
  EXPECT_EQ(table.blocks.size(), 1u);
  EXPECT_FALSE(append(pool, table, 1).block);
  EXPECT_EQ(table.blocks.size(), 2u);
}

TEST(BlockTable, CopiesASharedPartlyFilledBlockOnceAndLeavesTheOtherHolderInPlace) {
  BlockManager pool({.blocks = 4});
  BlockTable parent;
  append(pool, parent, kBlockTokens + 3);
  BlockTable child = fork(pool, parent, parent.num_tokens);
  EXPECT_EQ(pool.blocks.num_free(), 2);
  const auto copy = append(pool, child, 1).block;
  ASSERT_TRUE(copy);
  EXPECT_EQ(*copy, (BlockCopy{.from = parent.blocks[1], .to = child.blocks[1], .tokens = 3}));
  EXPECT_FALSE(append(pool, child, 1).block);
  EXPECT_FALSE(append(pool, parent, 1).block) << "the parent is its block's only holder again";
}

TEST(BlockTable, SharesFullBlocksWithoutEverCopyingThem) {
  BlockManager pool({.blocks = 4});
  BlockTable parent;
  append(pool, parent, kBlockTokens);
  BlockTable child = fork(pool, parent, parent.num_tokens);
  EXPECT_FALSE(append(pool, child, 1).block);
  EXPECT_EQ(child.blocks[0], parent.blocks[0]);
}

TEST(BlockTable, AForkInsideAFullBlockCopiesItBeforeWriting) {
  BlockManager pool({.blocks = 4});
  BlockTable parent;
  append(pool, parent, kBlockTokens);
  BlockTable child = fork(pool, parent, 5);
  const auto copy = append(pool, child, 1).block;
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->tokens, 5);
  EXPECT_NE(child.blocks[0], parent.blocks[0]);
}

TEST(BlockTable, RefusesAnAppendThatDoesNotFitAndChangesNothing) {
  BlockManager pool({.blocks = 1});
  BlockTable table;
  EXPECT_THROW(append(pool, table, kBlockTokens + 1), CheckError);
  EXPECT_TRUE(table.blocks.empty());
  EXPECT_EQ(pool.blocks.num_free(), 1);
}

TEST(BlockTable, KnowsWhichTokensLieInSharedBlocks) {
  BlockManager pool({.blocks = 8});
  BlockTable parent;
  append(pool, parent, 2 * kBlockTokens + 2);
  EXPECT_EQ(tokens_in_shared_blocks(pool, parent), 0);
  BlockTable child = fork(pool, parent, kBlockTokens + 1);
  EXPECT_EQ(tokens_in_shared_blocks(pool, parent), 2 * kBlockTokens);
  EXPECT_EQ(tokens_in_shared_blocks(pool, child), kBlockTokens + 1);
}

TEST(BlockTableWithStates, TakesAStateWithItsFirstTokenAndGivesItBackWithItsLast) {
  BlockManager pool({.blocks = 4, .states = 1});
  BlockTable table;
  EXPECT_FALSE(append(pool, table, 0).state);
  EXPECT_EQ(table.state, -1);
  EXPECT_FALSE(append(pool, table, 3).state) << "nothing to copy from";
  EXPECT_FALSE(append(pool, table, kBlockTokens).state);
  EXPECT_EQ(table.state, 0);
  EXPECT_EQ(pool.states.num_free(), 0);
  truncate(pool, table, table.num_tokens);
  EXPECT_EQ(table.state, 0);
  truncate(pool, table, table.num_tokens - 1);
  EXPECT_EQ(table.num_tokens, 0) << "no state of fewer tokens exists";
  EXPECT_EQ(table.state, -1);
  EXPECT_EQ(pool.states.num_free(), 1);
  EXPECT_EQ(pool.blocks.num_free(), 4);
}

TEST(BlockTableWithStates, CopiesASharedStateOnceAlsoAtTheEndOfABlock) {
  for (const int tokens : {kBlockTokens, kBlockTokens + 3}) {
    BlockManager pool({.blocks = 6, .states = 3});
    BlockTable parent;
    append(pool, parent, tokens);
    BlockTable child = fork(pool, parent, tokens);
    EXPECT_EQ(child.state, parent.state);
    const AppendCopies copies = append(pool, child, 1);
    EXPECT_EQ(copies.block.has_value(), tokens % kBlockTokens != 0);
    ASSERT_TRUE(copies.state);
    EXPECT_EQ(*copies.state, (StateCopy{.from = parent.state, .to = child.state}));
    EXPECT_FALSE(append(pool, child, 1).state);
    EXPECT_FALSE(append(pool, parent, 1).state) << "the parent is its state's only holder again";
  }
}

TEST(BlockTableWithStates, AForkElsewhereThanAtTheEndIsEmpty) {
  BlockManager pool({.blocks = 4, .states = 2});
  BlockTable parent;
  append(pool, parent, kBlockTokens + 1);
  const BlockTable child = fork(pool, parent, kBlockTokens);
  EXPECT_EQ(child.num_tokens, 0);
  EXPECT_TRUE(child.blocks.empty());
  EXPECT_EQ(child.state, -1);
  EXPECT_EQ(pool.blocks.num_free(), 2);
}

TEST(BlockTableWithStates, RefusesAnAppendWithoutAFreeStateAndChangesNothing) {
  BlockManager pool({.blocks = 8, .states = 1});
  BlockTable table;
  append(pool, table, 1);
  BlockTable shared = fork(pool, table, 1), another;
  for (BlockTable* needy : {&shared, &another}) {
    EXPECT_TRUE(fits(pool, *needy, 0));
    EXPECT_FALSE(fits(pool, *needy, 1));
    EXPECT_EQ(tokens_that_fit(pool, *needy), 0);
    EXPECT_THROW(append(pool, *needy, 1), CheckError);
  }
  EXPECT_EQ(pool.blocks.num_free(), 7);
  release(pool, table);
  EXPECT_EQ(tokens_that_fit(pool, shared), 8 * kBlockTokens - 1) << "the only holder writes in place";
}

TEST(BlockTableWithStates, KeepsAllItsTokensOrNone) {
  BlockManager pool({.blocks = 8, .states = 2});
  BlockTable parent;
  append(pool, parent, 2 * kBlockTokens + 2);
  EXPECT_EQ(tokens_in_shared_blocks(pool, parent), 0);
  BlockTable child = fork(pool, parent, parent.num_tokens);
  EXPECT_EQ(tokens_in_shared_blocks(pool, parent), parent.num_tokens);
  append(pool, child, 1);
  EXPECT_EQ(tokens_in_shared_blocks(pool, parent), 0) << "its blocks are shared, but its state is its own";
}

// The slow reference: each sequence is a list of its tokens' names, and the memory records which name each slot holds,
// and each state the names that it has been advanced over.
struct SlowTables {
  explicit SlowTables(const CacheSize& size)
      : pool(size), memory(memory_of(size.blocks)), window_memory(memory_of(size.window_blocks)), states(size.states) {}

  static std::vector<int> memory_of(int blocks) {
    return std::vector<int>(static_cast<std::size_t>(blocks) * kBlockTokens, -1);
  }

  static std::size_t slot(const std::vector<std::int32_t>& blocks, int position) {
    const auto block = static_cast<std::size_t>(blocks[static_cast<std::size_t>(position / kBlockTokens)]);
    return block * kBlockTokens + static_cast<std::size_t>(position % kBlockTokens);
  }

  static void copy(std::vector<int>& memory, const std::optional<BlockCopy>& copy) {
    if (!copy) return;
    for (int i = 0; i < copy->tokens; ++i) memory[copy->to * kBlockTokens + i] = memory[copy->from * kBlockTokens + i];
  }

  void append_tokens(int sequence, int count) {
    BlockTable& table = tables[sequence];
    const int begin = table.num_tokens;
    const AppendCopies copies = append(pool, table, count);
    copy(memory, copies.block);
    copy(window_memory, copies.window_block);
    if (copies.state) states[copies.state->to] = states[copies.state->from];
    for (int i = 0; i < count; ++i) {
      memory[slot(table.blocks, begin + i)] = next_name;
      if (pool.size.has_window()) window_memory[slot(table.window_blocks, begin + i)] = next_name;
      if (table.state >= 0 && begin + i == 0) states[table.state].clear();
      if (table.state >= 0) states[table.state].push_back(next_name);
      tokens[sequence].push_back(next_name++);
    }
  }

  void fork_sequence(int sequence, int num_tokens) {
    if (!can_continue_at(pool, tables[sequence], num_tokens)) num_tokens = 0;
    tables[next_sequence] = fork(pool, tables[sequence], num_tokens);
    tokens[next_sequence] = {tokens[sequence].begin(), tokens[sequence].begin() + num_tokens};
    ++next_sequence;
  }

  void truncate_sequence(int sequence, int kept) {
    if (!can_continue_at(pool, tables[sequence], kept)) kept = 0;
    truncate(pool, tables[sequence], kept);
    tokens[sequence].resize(kept);
  }

  void check() {
    std::map<std::int32_t, int> holders, window_holders, state_holders;
    for (auto& [sequence, table] : tables) {
      ASSERT_EQ(table.num_tokens, static_cast<int>(tokens[sequence].size()));
      ASSERT_EQ(static_cast<int>(table.blocks.size()), blocks_for(table.num_tokens));
      for (int i = 0; i < table.num_tokens; ++i)
        ASSERT_EQ(memory[slot(table.blocks, i)], tokens[sequence][i]) << "sequence " << sequence << " token " << i;
      check_window(sequence, table);
      ASSERT_EQ(table.state >= 0, pool.size.has_states() && table.num_tokens > 0);
      for (std::int32_t block : table.blocks) ++holders[block];
      for (std::int32_t block : table.window_blocks)
        if (block >= 0) ++window_holders[block];
      if (table.state < 0) continue;
      ASSERT_EQ(states[table.state], tokens[sequence]) << "sequence " << sequence;
      ++state_holders[table.state];
    }
    check_holders(pool.blocks, holders);
    check_holders(pool.window_blocks, window_holders);
    check_holders(pool.states, state_holders);
  }

  /// What the next row sees is there.
  void check_window(int sequence, const BlockTable& table) {
    ASSERT_EQ(table.window_blocks.size(), pool.size.has_window() ? table.blocks.size() : 0);
    if (!pool.size.has_window()) return;
    for (int i = std::max(0, table.num_tokens + 1 - pool.size.window); i < table.num_tokens; ++i) {
      ASSERT_GE(table.window_blocks[static_cast<std::size_t>(i / kBlockTokens)], 0);
      ASSERT_EQ(window_memory[slot(table.window_blocks, i)], tokens[sequence][i]) << "sequence " << sequence;
    }
  }

  static void check_holders(const SlotPool& slots, std::map<std::int32_t, int>& holders) {
    for (std::int32_t slot = 0; slot < slots.size(); ++slot) ASSERT_EQ(slots.holders(slot), holders[slot]);
    ASSERT_EQ(slots.num_free() + static_cast<int>(holders.size() - unheld(holders)), slots.size());
  }

  static std::size_t unheld(const std::map<std::int32_t, int>& holders) {
    std::size_t count = 0;
    for (const auto& [slot, number] : holders) count += number == 0 ? 1 : 0;
    return count;
  }

  BlockManager pool;
  std::vector<int> memory, window_memory;
  std::vector<std::vector<int>> states;
  std::map<int, BlockTable> tables{};
  std::map<int, std::vector<int>> tokens{};
  int next_sequence = 0;
  int next_name = 0;
};

/// Without states and window blocks, with few, with enough.
std::vector<CacheSize> cache_sizes(int blocks) {
  std::vector<CacheSize> sizes;
  for (const int states : {0, 1, 3, 100})
    for (const int window_blocks : {0, 7, 100})
      sizes.push_back({.blocks = blocks, .states = states, .window_blocks = window_blocks, .window = 40});
  return sizes;
}

int any_sequence(const SlowTables& slow, RandomStream& random) {
  auto it = slow.tables.begin();
  std::advance(it, static_cast<long>(random.below(slow.tables.size())));
  return it->first;
}

int any_length(const BlockTable& table, RandomStream& random) {
  return static_cast<int>(random.below(static_cast<std::uint64_t>(table.num_tokens) + 1));
}

void random_operation(SlowTables& slow, RandomStream& random) {
  if (slow.tables.empty() || random.chance(0.1)) {
    slow.tables[slow.next_sequence];
    slow.tokens[slow.next_sequence++];
    return;
  }
  const int sequence = any_sequence(slow, random);
  BlockTable& table = slow.tables[sequence];
  const double what = random.uniform();
  if (what < 0.55) {
    const int wanted = 1 + static_cast<int>(random.below(2 * kBlockTokens));
    const int count = std::min(wanted, tokens_that_fit(slow.pool, table));
    ASSERT_TRUE(fits(slow.pool, table, count));
    slow.append_tokens(sequence, count);
  } else if (what < 0.75) {
    const bool at_end = random.chance(0.5);
    slow.fork_sequence(sequence, at_end ? table.num_tokens : any_length(table, random));
  } else if (what < 0.8) {
    leave_behind(slow.pool, table);
  } else if (what < 0.87) {
    slow.truncate_sequence(sequence, any_length(table, random));
  } else {
    release(slow.pool, table);
    slow.tables.erase(sequence);
    slow.tokens.erase(sequence);
  }
}

TEST(BlockTable, HoldsEveryTokenAndStateUnderRandomForksAppendsTruncationsAndReleases) {
  for (const CacheSize& size : cache_sizes(24)) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      SlowTables slow(size);
      RandomStream random(seed);
      for (int i = 0; i < 300; ++i) {
        random_operation(slow, random);
        slow.check();
        if (HasFatalFailure())
          FAIL() << size.states << " states, " << size.window_blocks << " window blocks, seed " << seed << " operation "
                 << i;
      }
    }
  }
}

TEST(BlockTable, TokensThatFitIsTheLargestCountThatFits) {
  RandomStream random(5);
  for (const CacheSize& size : cache_sizes(12)) {
    for (int trial = 0; trial < 100; ++trial) {
      BlockManager pool(size);
      BlockTable parent;
      append(pool, parent, static_cast<int>(random.below(60)));
      if (random.chance(0.5)) leave_behind(pool, parent);
      BlockTable child = fork(pool, parent, random.chance(0.5) ? parent.num_tokens : any_length(parent, random));
      const int fit = tokens_that_fit(pool, child);
      EXPECT_TRUE(fits(pool, child, fit));
      EXPECT_FALSE(fits(pool, child, fit + 1));
      EXPECT_LE(blocks_needed(pool, child, fit), pool.blocks.num_free());
      EXPECT_TRUE(fits_in_parts(pool, child, fit));
    }
  }
}

}  // namespace
}  // namespace carnot
