// cache/block_manager.h -- which KV blocks and which states are free, and how many tables share each of the others.
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

struct BlockManager {
  /// Without states, tables have blocks only.
  explicit BlockManager(int num_blocks, int num_states = 0) : blocks(num_blocks), states(num_states) {}

  bool has_states() const { return states.size() > 0; }

  SlotPool blocks;
  SlotPool states;
};

}  // namespace carnot
