#include "carnot/core/cache/block_table.h"

#include <algorithm>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

using Blocks = std::vector<std::int32_t>;

// Whether the next token goes into the last block and another table holds that block too.
bool must_copy_last(const SlotPool& pool, const Blocks& blocks, int num_tokens) {
  return num_tokens % kBlockTokens != 0 && pool.holders(blocks.back()) > 1;
}

int blocks_needed(const SlotPool& pool, const Blocks& blocks, int num_tokens, int count) {
  if (count == 0) return 0;
  const int more = blocks_for(num_tokens + count) - static_cast<int>(blocks.size());
  return more + (must_copy_last(pool, blocks, num_tokens) ? 1 : 0);
}

int window_blocks_needed(const BlockManager& manager, const BlockTable& table, int count) {
  if (!manager.size.has_window()) return 0;
  return blocks_needed(manager.window_blocks, table.window_blocks, table.num_tokens, count);
}

// With what the pool has free.
int tokens_that_fit(const SlotPool& pool, const Blocks& blocks, int num_tokens) {
  const int copied = must_copy_last(pool, blocks, num_tokens) ? 1 : 0;
  return (static_cast<int>(blocks.size()) + pool.num_free() - copied) * kBlockTokens - num_tokens;
}

bool shares_state(const BlockManager& manager, const BlockTable& table) {
  return table.state >= 0 && manager.states.holders(table.state) > 1;
}

bool needs_state(const BlockManager& manager, const BlockTable& table) {
  return manager.size.has_states() && (table.state < 0 || shares_state(manager, table));
}

bool lacks_state(const BlockManager& manager, const BlockTable& table) {
  return needs_state(manager, table) && manager.states.num_free() == 0;
}

// The slot that the table writes instead of one that others hold, too.
std::int32_t replace(SlotPool& pool, std::int32_t& held) {
  const std::int32_t shared = held;
  held = pool.take();
  pool.release(shared);
  return shared;
}

std::optional<BlockCopy> grow(SlotPool& pool, Blocks& blocks, int num_tokens, int count) {
  std::optional<BlockCopy> copy;
  if (must_copy_last(pool, blocks, num_tokens)) {
    const std::int32_t from = replace(pool, blocks.back());
    copy = BlockCopy{.from = from, .to = blocks.back(), .tokens = num_tokens % kBlockTokens};
  }
  while (static_cast<int>(blocks.size()) < blocks_for(num_tokens + count)) blocks.push_back(pool.take());
  return copy;
}

void shrink(SlotPool& pool, Blocks& blocks, int num_blocks) {
  for (; static_cast<int>(blocks.size()) > num_blocks; blocks.pop_back())
    if (blocks.back() >= 0) pool.release(blocks.back());
}

// Shared from block `begin` on.
Blocks shared(SlotPool& pool, const Blocks& blocks, int begin, int end) {
  Blocks own(static_cast<std::size_t>(end), -1);
  std::copy(blocks.begin() + begin, blocks.begin() + end, own.begin() + begin);
  for (int b = begin; b < end; ++b) pool.share(own[static_cast<std::size_t>(b)]);
  return own;
}

// The first window block that is read for a row after `num_tokens` tokens.
int window_begin(const BlockManager& manager, int num_tokens) {
  return std::max(0, num_tokens + 1 - manager.size.window) / (kBlocksOfRun * kBlockTokens) * kBlocksOfRun;
}

// Blocks up to the last one that another table holds, too.
int num_shared(const SlotPool& pool, const Blocks& blocks) {
  auto count = blocks.size();
  while (count > 0 && (blocks[count - 1] < 0 || pool.holders(blocks[count - 1]) == 1)) --count;
  return static_cast<int>(count);
}

}  // namespace

int blocks_for(int num_tokens) { return (num_tokens + kBlockTokens - 1) / kBlockTokens; }

int blocks_needed(const BlockManager& manager, const BlockTable& table, int count) {
  return blocks_needed(manager.blocks, table.blocks, table.num_tokens, count);
}

bool fits(const BlockManager& manager, const BlockTable& table, int count) {
  if (count > 0 && lacks_state(manager, table)) return false;
  return blocks_needed(manager, table, count) <= manager.blocks.num_free() &&
         window_blocks_needed(manager, table, count) <= manager.window_blocks.num_free();
}

int tokens_that_fit(const BlockManager& manager, const BlockTable& table) {
  if (!fits(manager, table, 1)) return 0;
  const int count = tokens_that_fit(manager.blocks, table.blocks, table.num_tokens);
  if (!manager.size.has_window()) return count;
  return std::min(count, tokens_that_fit(manager.window_blocks, table.window_blocks, table.num_tokens));
}

bool fits_in_parts(const BlockManager& manager, const BlockTable& table, int count) {
  if (count > 0 && lacks_state(manager, table)) return false;
  const std::int64_t in_window =
      std::min<std::int64_t>(window_blocks_needed(manager, table, count), window_blocks_of_one(manager.size.window));
  return blocks_needed(manager, table, count) <= manager.blocks.num_free() &&
         (!manager.size.has_window() || in_window <= manager.window_blocks.num_free());
}

AppendCopies append(BlockManager& manager, BlockTable& table, int count) {
  CARNOT_CHECK_GE(count, 0);
  CARNOT_CHECK(fits(manager, table, count), "the cache has no room for these tokens");
  AppendCopies copies;
  if (count == 0) return copies;
  copies.block = grow(manager.blocks, table.blocks, table.num_tokens, count);
  if (manager.size.has_window())
    copies.window_block = grow(manager.window_blocks, table.window_blocks, table.num_tokens, count);
  if (shares_state(manager, table)) {
    const std::int32_t from = replace(manager.states, table.state);
    copies.state = StateCopy{.from = from, .to = table.state};
  } else if (needs_state(manager, table)) {
    table.state = manager.states.take();
  }
  table.num_tokens += count;
  return copies;
}

void leave_behind(BlockManager& manager, BlockTable& table) {
  if (!manager.size.has_window()) return;
  for (int b = window_begin(manager, table.num_tokens - kBlockTokens) - 1; b >= 0; --b) {
    std::int32_t& block = table.window_blocks[static_cast<std::size_t>(b)];
    if (block < 0) return;
    manager.window_blocks.release(block);
    block = -1;
  }
}

bool can_continue_at(const BlockManager& manager, const BlockTable& table, int num_tokens) {
  if (num_tokens == 0) return true;
  if (manager.size.has_states() && num_tokens < table.num_tokens) return false;
  if (!manager.size.has_window()) return true;
  const int begin = window_begin(manager, num_tokens);
  return begin >= blocks_for(num_tokens) || table.window_blocks[static_cast<std::size_t>(begin)] >= 0;
}

BlockTable fork(BlockManager& manager, const BlockTable& parent, int num_tokens) {
  CARNOT_CHECK_GE(num_tokens, 0);
  CARNOT_CHECK_LE(num_tokens, parent.num_tokens);
  BlockTable child;
  if (num_tokens == 0 || !can_continue_at(manager, parent, num_tokens)) return child;
  const int blocks = blocks_for(num_tokens);
  child.num_tokens = num_tokens;
  child.blocks = shared(manager.blocks, parent.blocks, 0, blocks);
  if (manager.size.has_window())
    child.window_blocks = shared(manager.window_blocks, parent.window_blocks,
                                 std::min(window_begin(manager, num_tokens), blocks), blocks);
  child.state = parent.state;
  if (child.state >= 0) manager.states.share(child.state);
  return child;
}

void truncate(BlockManager& manager, BlockTable& table, int num_tokens) {
  CARNOT_CHECK_GE(num_tokens, 0);
  CARNOT_CHECK_LE(num_tokens, table.num_tokens);
  if (!can_continue_at(manager, table, num_tokens)) num_tokens = 0;
  if (num_tokens < table.num_tokens && table.state >= 0) {
    manager.states.release(table.state);
    table.state = -1;
  }
  table.num_tokens = num_tokens;
  shrink(manager.blocks, table.blocks, blocks_for(num_tokens));
  shrink(manager.window_blocks, table.window_blocks, blocks_for(num_tokens));
}

void release(BlockManager& manager, BlockTable& table) { truncate(manager, table, 0); }

int tokens_in_shared_blocks(const BlockManager& manager, const BlockTable& table) {
  if (table.state >= 0) return shares_state(manager, table) ? table.num_tokens : 0;
  const int shared =
      std::max(num_shared(manager.blocks, table.blocks), num_shared(manager.window_blocks, table.window_blocks));
  const int tokens = std::min(table.num_tokens, shared * kBlockTokens);
  return can_continue_at(manager, table, tokens) ? tokens : 0;
}

}  // namespace carnot
