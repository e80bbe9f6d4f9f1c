// cache/block_table.h -- which KV blocks hold one sequence's tokens.
//
// Token p of the sequence is in blocks[p / kBlockTokens] at offset p % kBlockTokens. Manages block numbers and token
// counts; does not depend on tensors, layers or text. Not thread-safe.
//
// Invariant: a block that more than one table holds is never written. append() first gives the table its own copy.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "carnot/core/cache/block_manager.h"

namespace carnot {

struct BlockTable {
  std::vector<std::int32_t> blocks{};
  int num_tokens = 0;
};

/// The first `tokens` positions of block `from` have to be copied to block `to`, in every layer.
struct BlockCopy {
  std::int32_t from = 0;
  std::int32_t to = 0;
  int tokens = 0;

  bool operator==(const BlockCopy&) const = default;
};

/// Blocks for `num_tokens` tokens, the last one possibly partial.
int blocks_for(int num_tokens);

/// Number of free blocks that append(blocks, table, count) takes.
int blocks_needed(const BlockManager& blocks, const BlockTable& table, int count);

/// Tokens that could be appended if the table got at most `free_blocks` blocks.
int tokens_that_fit(const BlockManager& blocks, const BlockTable& table, int free_blocks);

/// Makes room for `count` more tokens. Returns the copy that the caller must perform before writing them, if any: that
/// of a last block that is partly filled and shared. Copies of several appends are performed in the order of the
/// appends. REQUIRES: blocks.num_free() >= blocks_needed(blocks, table, count).
std::optional<BlockCopy> append(BlockManager& blocks, BlockTable& table, int count);

/// A table over the first `num_tokens` tokens of `parent`; their blocks are shared, nothing is copied.
/// REQUIRES: num_tokens <= parent.num_tokens.
BlockTable fork(BlockManager& blocks, const BlockTable& parent, int num_tokens);

/// Removes all tokens after the first `num_tokens`. REQUIRES: num_tokens <= table.num_tokens.
void truncate(BlockManager& blocks, BlockTable& table, int num_tokens);

/// Releases all blocks; the table is empty.
void release(BlockManager& blocks, BlockTable& table);

/// Tokens that remain if the table releases every block after its last shared one, which frees those blocks at once.
int tokens_in_shared_blocks(const BlockManager& blocks, const BlockTable& table);

}  // namespace carnot
