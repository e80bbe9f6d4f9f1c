#include "carnot/core/cache/block_table.h"

#include <algorithm>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

// Whether the next token goes into the last block and another table holds that block too.
bool must_copy_last(const BlockManager& blocks, const BlockTable& table) {
  return table.num_tokens % kBlockTokens != 0 && blocks.holders(table.blocks.back()) > 1;
}

}  // namespace

int blocks_for(int num_tokens) { return (num_tokens + kBlockTokens - 1) / kBlockTokens; }

int blocks_needed(const BlockManager& blocks, const BlockTable& table, int count) {
  if (count == 0) return 0;
  const int more = blocks_for(table.num_tokens + count) - static_cast<int>(table.blocks.size());
  return more + (must_copy_last(blocks, table) ? 1 : 0);
}

int tokens_that_fit(const BlockManager& blocks, const BlockTable& table, int free_blocks) {
  const bool copies = must_copy_last(blocks, table);
  if (copies && free_blocks == 0) return 0;
  const int available = static_cast<int>(table.blocks.size()) + free_blocks - (copies ? 1 : 0);
  return available * kBlockTokens - table.num_tokens;
}

std::optional<BlockCopy> append(BlockManager& blocks, BlockTable& table, int count) {
  CARNOT_CHECK_GE(count, 0);
  CARNOT_CHECK_LE(blocks_needed(blocks, table, count), blocks.num_free());
  std::optional<BlockCopy> copy;
  if (count > 0 && must_copy_last(blocks, table)) {
    std::int32_t& last = table.blocks.back();
    copy = BlockCopy{.from = last, .to = blocks.take(), .tokens = table.num_tokens % kBlockTokens};
    blocks.release(last);
    last = copy->to;
  }
  table.num_tokens += count;
  while (static_cast<int>(table.blocks.size()) < blocks_for(table.num_tokens)) table.blocks.push_back(blocks.take());
  return copy;
}

BlockTable fork(BlockManager& blocks, const BlockTable& parent, int num_tokens) {
  CARNOT_CHECK_GE(num_tokens, 0);
  CARNOT_CHECK_LE(num_tokens, parent.num_tokens);
  BlockTable child;
  child.num_tokens = num_tokens;
  child.blocks.assign(parent.blocks.begin(), parent.blocks.begin() + blocks_for(num_tokens));
  for (std::int32_t block : child.blocks) blocks.share(block);
  return child;
}

void truncate(BlockManager& blocks, BlockTable& table, int num_tokens) {
  CARNOT_CHECK_GE(num_tokens, 0);
  CARNOT_CHECK_LE(num_tokens, table.num_tokens);
  table.num_tokens = num_tokens;
  while (static_cast<int>(table.blocks.size()) > blocks_for(num_tokens)) {
    blocks.release(table.blocks.back());
    table.blocks.pop_back();
  }
}

void release(BlockManager& blocks, BlockTable& table) { truncate(blocks, table, 0); }

int tokens_in_shared_blocks(const BlockManager& blocks, const BlockTable& table) {
  int shared = static_cast<int>(table.blocks.size());
  while (shared > 0 && blocks.holders(table.blocks[static_cast<std::size_t>(shared) - 1]) == 1) --shared;
  return std::min(table.num_tokens, shared * kBlockTokens);
}

}  // namespace carnot
