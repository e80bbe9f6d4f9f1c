#include "carnot/core/cache/block_table.h"

#include <algorithm>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

// Whether the next token goes into the last block and another table holds that block too.
bool must_copy_last(const BlockManager& manager, const BlockTable& table) {
  return table.num_tokens % kBlockTokens != 0 && manager.blocks.holders(table.blocks.back()) > 1;
}

bool shares_state(const BlockManager& manager, const BlockTable& table) {
  return table.state >= 0 && manager.states.holders(table.state) > 1;
}

bool needs_state(const BlockManager& manager, const BlockTable& table) {
  return manager.has_states() && (table.state < 0 || shares_state(manager, table));
}

// The slot that the table writes instead of one that others hold, too.
std::int32_t replace(SlotPool& pool, std::int32_t& held) {
  const std::int32_t shared = held;
  held = pool.take();
  pool.release(shared);
  return shared;
}

}  // namespace

int blocks_for(int num_tokens) { return (num_tokens + kBlockTokens - 1) / kBlockTokens; }

int blocks_needed(const BlockManager& manager, const BlockTable& table, int count) {
  if (count == 0) return 0;
  const int more = blocks_for(table.num_tokens + count) - static_cast<int>(table.blocks.size());
  return more + (must_copy_last(manager, table) ? 1 : 0);
}

bool fits(const BlockManager& manager, const BlockTable& table, int count) {
  if (count > 0 && needs_state(manager, table) && manager.states.num_free() == 0) return false;
  return blocks_needed(manager, table, count) <= manager.blocks.num_free();
}

int tokens_that_fit(const BlockManager& manager, const BlockTable& table) {
  if (!fits(manager, table, 1)) return 0;
  const int copied = must_copy_last(manager, table) ? 1 : 0;
  const int available = static_cast<int>(table.blocks.size()) + manager.blocks.num_free() - copied;
  return available * kBlockTokens - table.num_tokens;
}

AppendCopies append(BlockManager& manager, BlockTable& table, int count) {
  CARNOT_CHECK_GE(count, 0);
  CARNOT_CHECK(fits(manager, table, count), "the cache has no room for these tokens");
  AppendCopies copies;
  if (count == 0) return copies;
  if (must_copy_last(manager, table)) {
    const std::int32_t from = replace(manager.blocks, table.blocks.back());
    copies.block = BlockCopy{.from = from, .to = table.blocks.back(), .tokens = table.num_tokens % kBlockTokens};
  }
  if (shares_state(manager, table)) {
    const std::int32_t from = replace(manager.states, table.state);
    copies.state = StateCopy{.from = from, .to = table.state};
  } else if (needs_state(manager, table)) {
    table.state = manager.states.take();
  }
  table.num_tokens += count;
  while (static_cast<int>(table.blocks.size()) < blocks_for(table.num_tokens))
    table.blocks.push_back(manager.blocks.take());
  return copies;
}

BlockTable fork(BlockManager& manager, const BlockTable& parent, int num_tokens) {
  CARNOT_CHECK_GE(num_tokens, 0);
  CARNOT_CHECK_LE(num_tokens, parent.num_tokens);
  BlockTable child;
  if (manager.has_states() && num_tokens < parent.num_tokens) return child;
  child.num_tokens = num_tokens;
  child.blocks.assign(parent.blocks.begin(), parent.blocks.begin() + blocks_for(num_tokens));
  for (std::int32_t block : child.blocks) manager.blocks.share(block);
  child.state = parent.state;
  if (child.state >= 0) manager.states.share(child.state);
  return child;
}

void truncate(BlockManager& manager, BlockTable& table, int num_tokens) {
  CARNOT_CHECK_GE(num_tokens, 0);
  CARNOT_CHECK_LE(num_tokens, table.num_tokens);
  if (num_tokens < table.num_tokens && table.state >= 0) {
    manager.states.release(table.state);
    table.state = -1;
    num_tokens = 0;
  }
  table.num_tokens = num_tokens;
  while (static_cast<int>(table.blocks.size()) > blocks_for(num_tokens)) {
    manager.blocks.release(table.blocks.back());
    table.blocks.pop_back();
  }
}

void release(BlockManager& manager, BlockTable& table) { truncate(manager, table, 0); }

int tokens_in_shared_blocks(const BlockManager& manager, const BlockTable& table) {
  if (table.state >= 0) return shares_state(manager, table) ? table.num_tokens : 0;
  int shared = static_cast<int>(table.blocks.size());
  while (shared > 0 && manager.blocks.holders(table.blocks[static_cast<std::size_t>(shared) - 1]) == 1) --shared;
  return std::min(table.num_tokens, shared * kBlockTokens);
}

}  // namespace carnot
