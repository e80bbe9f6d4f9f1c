// cache/block_manager.h -- which KV blocks and which states are free, and how many tables share each of the others.
//
// Layers whose rows see a window of the last positions alone can have blocks of their own, fewer than the others.
//
// Manages numbers only: no tensors, layers or tokens. Not thread-safe; the engine owns the manager and uses it from one
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "carnot/core/base/kv_block.h"

namespace carnot {

/// Places of one kind in the cache: its blocks, or its states.
class SlotPool {
 public:
  /// Slots 0 to size - 1, all free.
  explicit SlotPool(int size);

  int size() const { return static_cast<int>(holders_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }

  /// Takes a free slot, which one table then holds: the most recently freed one, initially the lowest. REQUIRES:
  /// num_free() > 0.
  std::int32_t take();

  /// One more table holds the slot. REQUIRES: the slot is held.
  void share(std::int32_t slot);

  /// One table fewer holds the slot, which is free once no table does. REQUIRES: the slot is held.
  void release(std::int32_t slot);

  /// Number of tables that hold the slot; 0 if it is free.
  int holders(std::int32_t slot) const { return holders_[slot]; }

 private:
  std::vector<int> holders_;
  std::vector<std::int32_t> free_;  // a stack
};

/// How many places of each kind a cache has.
struct CacheSize {
  int blocks = 0;
  int states = 0;         ///< 0: sequences have none
  int window_blocks = 0;  ///< of layers with a window; 0: they have `blocks`, as the others
  int window = 0;         ///< positions that a row of such a layer sees, its own included

  bool has_states() const { return states > 0; }
  bool has_window() const { return window_blocks > 0; }
};

/// The most window blocks that a sequence holds whose rows come one at a time (leave_behind() in cache/block_table.h).
std::int64_t window_blocks_of_one(int window);

/// Window blocks for this many sequences and the rows of one forward; 0 where they were no fewer than `blocks`.
std::int64_t window_blocks_for(int window, std::int64_t sequences, int rows, std::int64_t blocks);

struct BlockManager {
  /// REQUIRES: where there are window blocks, enough for one sequence.
  explicit BlockManager(const CacheSize& size);

  CacheSize size;
  SlotPool blocks;
  SlotPool states;
  SlotPool window_blocks;
};

}  // namespace carnot
