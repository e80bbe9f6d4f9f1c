// cache/block_table.h -- which KV blocks hold one sequence's tokens, and which state stands for all of them.
//
// Token p of the sequence is in blocks[p / kBlockTokens] at offset p % kBlockTokens, and in window_blocks, where the
// manager has those, until every row to come is too far behind it. Where the manager has states (a recurrent layer
// keeps one instead of something of each token), a table that is not empty has one, which is that after its last token:
// states of earlier tokens do not exist. Manages numbers and token counts; does not depend on tensors, layers or text.
// Not thread-safe.
//
// Invariant: a block or state that more than one table holds is never written. append() first gives the table its own
// copy.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "carnot/core/cache/block_manager.h"

namespace carnot {

struct BlockTable {
  std::vector<std::int32_t> blocks{};
  std::vector<std::int32_t> window_blocks{};  ///< as many, or none; the first ones may be given up: -1
  int num_tokens = 0;
  std::int32_t state = -1;  ///< -1: empty, or the manager has none
};

/// The first `tokens` positions of block `from` have to be copied to block `to`, in every layer that has such blocks.
struct BlockCopy {
  std::int32_t from = 0;
  std::int32_t to = 0;
  int tokens = 0;

  bool operator==(const BlockCopy&) const = default;
};

/// State `from` has to be copied to state `to`, in every layer.
struct StateCopy {
  std::int32_t from = 0;
  std::int32_t to = 0;

  bool operator==(const StateCopy&) const = default;
};

/// What the caller must copy before it writes the new tokens.
struct AppendCopies {
  std::optional<BlockCopy> block{};         ///< a last block that is partly filled and shared
  std::optional<BlockCopy> window_block{};  ///< the same of window blocks
  std::optional<StateCopy> state{};         ///< a shared state
};

/// Blocks for `num_tokens` tokens, the last one possibly partial.
int blocks_for(int num_tokens);

/// Number of free blocks that append(manager, table, count) takes.
int blocks_needed(const BlockManager& manager, const BlockTable& table, int count);

/// Whether there are the free blocks and the free state, if it takes one, for append(manager, table, count).
bool fits(const BlockManager& manager, const BlockTable& table, int count);

/// The largest count that fits.
int tokens_that_fit(const BlockManager& manager, const BlockTable& table);

/// Whether `count` tokens fit in several appends, between which the table gives up what left its window.
bool fits_in_parts(const BlockManager& manager, const BlockTable& table, int count);

/// Makes room for `count` more tokens. The state, where there are states, is to be advanced over them, from nothing if
/// the table was empty. Copies of several appends are performed in the order of the appends. REQUIRES: it fits.
AppendCopies append(BlockManager& manager, BlockTable& table, int count);

/// Releases the window blocks that are read for no row after the table's tokens, nor for one up to kBlockTokens
/// earlier, where it still can be forked.
void leave_behind(BlockManager& manager, BlockTable& table);

/// Whether all is there that a row after the first `num_tokens` tokens needs: where there are states, only if these are
/// all tokens; where there are window blocks, only if none of those it sees was given up.
bool can_continue_at(const BlockManager& manager, const BlockTable& table, int num_tokens);

/// A table over the first `num_tokens` tokens of `parent`; their blocks are shared, as far as they are needed, and
/// nothing is copied. The table is empty where nothing can continue there. REQUIRES: num_tokens <= parent.num_tokens.
BlockTable fork(BlockManager& manager, const BlockTable& parent, int num_tokens);

/// Removes all tokens after the first `num_tokens`, or all tokens where nothing can continue there (can_continue_at).
///
/// REQUIRES: num_tokens <= table.num_tokens.
void truncate(BlockManager& manager, BlockTable& table, int num_tokens);

/// Releases all blocks and the state; the table is empty.
void release(BlockManager& manager, BlockTable& table);

/// Tokens that remain if the table releases every block after its last shared one, which frees those blocks at once.
/// Where there are states: all tokens if the state is shared, else none.
int tokens_in_shared_blocks(const BlockManager& manager, const BlockTable& table);

}  // namespace carnot
