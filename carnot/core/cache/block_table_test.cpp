#include "carnot/core/cache/block_table.h"

#include <gtest/gtest.h>

#include <map>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"

namespace carnot {
namespace {

TEST(BlockManager, HandsOutTheLowestBlockFirstAndTheLastFreedNext) {
  BlockManager pool(3);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  pool.release(0);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(BlockManager, KeepsABlockUntilItsLastHolderReleasesIt) {
  BlockManager pool(1);
  const std::int32_t block = pool.take();
  pool.share(block);
  pool.release(block);
  EXPECT_EQ(pool.num_free(), 0);
  pool.release(block);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(BlockManager, RefusesWhatWouldCorruptIt) {
  BlockManager pool(1);
  EXPECT_THROW(pool.release(0), CheckError);
  EXPECT_THROW(pool.share(0), CheckError);
  EXPECT_THROW(pool.release(7), CheckError);
  pool.take();
  EXPECT_THROW(pool.take(), CheckError);
}

TEST(BlockTable, FillsABlockBeforeItTakesTheNext) {
  BlockManager pool(4);
  BlockTable table;
  EXPECT_EQ(blocks_needed(pool, table, kBlockTokens), 1);
  EXPECT_FALSE(append(pool, table, kBlockTokens - 1));
  EXPECT_FALSE(append(pool, table, 1));
  EXPECT_EQ(table.blocks.size(), 1u);
  EXPECT_FALSE(append(pool, table, 1));
  EXPECT_EQ(table.blocks.size(), 2u);
}

TEST(BlockTable, CopiesASharedPartlyFilledBlockOnceAndLeavesTheOtherHolderInPlace) {
  BlockManager pool(4);
  BlockTable parent;
  append(pool, parent, kBlockTokens + 3);
  BlockTable child = fork(pool, parent, parent.num_tokens);
  EXPECT_EQ(pool.num_free(), 2);
  const auto copy = append(pool, child, 1);
  ASSERT_TRUE(copy);
  EXPECT_EQ(*copy, (BlockCopy{.from = parent.blocks[1], .to = child.blocks[1], .tokens = 3}));
  EXPECT_FALSE(append(pool, child, 1));
  EXPECT_FALSE(append(pool, parent, 1)) << "the parent is its block's only holder again";
}

TEST(BlockTable, SharesFullBlocksWithoutEverCopyingThem) {
  BlockManager pool(4);
  BlockTable parent;
  append(pool, parent, kBlockTokens);
  BlockTable child = fork(pool, parent, parent.num_tokens);
  EXPECT_FALSE(append(pool, child, 1));
  EXPECT_EQ(child.blocks[0], parent.blocks[0]);
}

TEST(BlockTable, AForkInsideAFullBlockCopiesItBeforeWriting) {
  BlockManager pool(4);
  BlockTable parent;
  append(pool, parent, kBlockTokens);
  BlockTable child = fork(pool, parent, 5);
  const auto copy = append(pool, child, 1);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->tokens, 5);
  EXPECT_NE(child.blocks[0], parent.blocks[0]);
}

TEST(BlockTable, RefusesAnAppendThatDoesNotFitAndChangesNothing) {
  BlockManager pool(1);
  BlockTable table;
  EXPECT_THROW(append(pool, table, kBlockTokens + 1), CheckError);
  EXPECT_TRUE(table.blocks.empty());
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(BlockTable, KnowsWhichTokensLieInSharedBlocks) {
  BlockManager pool(8);
  BlockTable parent;
  append(pool, parent, 2 * kBlockTokens + 2);
  EXPECT_EQ(tokens_in_shared_blocks(pool, parent), 0);
  BlockTable child = fork(pool, parent, kBlockTokens + 1);
  EXPECT_EQ(tokens_in_shared_blocks(pool, parent), 2 * kBlockTokens);
  EXPECT_EQ(tokens_in_shared_blocks(pool, child), kBlockTokens + 1);
}

// The slow reference: each sequence is a list of its tokens' names, and the memory records which name each slot holds.
struct SlowTables {
  explicit SlowTables(int num_blocks)
      : pool(num_blocks), memory(static_cast<std::size_t>(num_blocks) * kBlockTokens, -1) {}

  int& slot(const BlockTable& table, int position) {
    const auto block = static_cast<std::size_t>(table.blocks[static_cast<std::size_t>(position / kBlockTokens)]);
    return memory[block * kBlockTokens + static_cast<std::size_t>(position % kBlockTokens)];
  }

  void append_tokens(int sequence, int count) {
    BlockTable& table = tables[sequence];
    const int begin = table.num_tokens;
    if (const auto copy = append(pool, table, count)) {
      for (int i = 0; i < copy->tokens; ++i)
        memory[copy->to * kBlockTokens + i] = memory[copy->from * kBlockTokens + i];
    }
    for (int i = 0; i < count; ++i) {
      slot(table, begin + i) = next_name;
      tokens[sequence].push_back(next_name++);
    }
  }

  void fork_sequence(int sequence, int num_tokens) {
    tables[next_sequence] = fork(pool, tables[sequence], num_tokens);
    tokens[next_sequence] = {tokens[sequence].begin(), tokens[sequence].begin() + num_tokens};
    ++next_sequence;
  }

  void check() {
    std::map<std::int32_t, int> holders;
    for (auto& [sequence, table] : tables) {
      ASSERT_EQ(table.num_tokens, static_cast<int>(tokens[sequence].size()));
      ASSERT_EQ(static_cast<int>(table.blocks.size()), blocks_for(table.num_tokens));
      for (int i = 0; i < table.num_tokens; ++i)
        ASSERT_EQ(slot(table, i), tokens[sequence][i]) << "sequence " << sequence << " token " << i;
      for (std::int32_t block : table.blocks) ++holders[block];
    }
    for (std::int32_t block = 0; block < pool.size(); ++block) ASSERT_EQ(pool.holders(block), holders[block]);
    ASSERT_EQ(pool.num_free() + static_cast<int>(holders.size() - unheld(holders)), pool.size());
  }

  static std::size_t unheld(const std::map<std::int32_t, int>& holders) {
    std::size_t count = 0;
    for (const auto& [block, number] : holders) count += number == 0 ? 1 : 0;
    return count;
  }

  BlockManager pool;
  std::vector<int> memory;
  std::map<int, BlockTable> tables{};
  std::map<int, std::vector<int>> tokens{};
  int next_sequence = 0;
  int next_name = 0;
};

int any_sequence(const SlowTables& slow, RandomStream& random) {
  auto it = slow.tables.begin();
  std::advance(it, static_cast<long>(random.below(slow.tables.size())));
  return it->first;
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
    const int count = std::min(wanted, tokens_that_fit(slow.pool, table, slow.pool.num_free()));
    ASSERT_LE(blocks_needed(slow.pool, table, count), slow.pool.num_free());
    slow.append_tokens(sequence, count);
  } else if (what < 0.75) {
    slow.fork_sequence(sequence, static_cast<int>(random.below(static_cast<std::uint64_t>(table.num_tokens) + 1)));
  } else if (what < 0.85) {
    const int kept = static_cast<int>(random.below(static_cast<std::uint64_t>(table.num_tokens) + 1));
    truncate(slow.pool, table, kept);
    slow.tokens[sequence].resize(kept);
  } else {
    release(slow.pool, table);
    slow.tables.erase(sequence);
    slow.tokens.erase(sequence);
  }
}

TEST(BlockTable, HoldsEveryTokenUnderRandomForksAppendsTruncationsAndReleases) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SlowTables slow(24);
    RandomStream random(seed);
    for (int i = 0; i < 300; ++i) {
      random_operation(slow, random);
      slow.check();
      if (HasFatalFailure()) FAIL() << "seed " << seed << " operation " << i;
    }
  }
}

TEST(BlockTable, TokensThatFitIsTheLargestCountThatTheFreeBlocksAllow) {
  RandomStream random(5);
  for (int trial = 0; trial < 200; ++trial) {
    BlockManager pool(12);
    BlockTable parent;
    append(pool, parent, static_cast<int>(random.below(60)));
    BlockTable child =
        fork(pool, parent, static_cast<int>(random.below(static_cast<std::uint64_t>(parent.num_tokens) + 1)));
    const int fit = tokens_that_fit(pool, child, pool.num_free());
    EXPECT_LE(blocks_needed(pool, child, fit), pool.num_free());
    EXPECT_GT(blocks_needed(pool, child, fit + 1), pool.num_free());
  }
}

}  // namespace
}  // namespace carnot
