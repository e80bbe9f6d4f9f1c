// cache/block_manager.h -- which KV blocks are free, and how many tables share each of the others.
//
// Knows block numbers only: no tensors, no layers, no tokens. Not thread-safe; the engine owns the manager and touches
// it from one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "carnot/base/kv_block.h"

namespace carnot {

class BlockManager {
 public:
  /// Blocks 0 to num_blocks - 1, all free.
  explicit BlockManager(int num_blocks);

  int size() const { return static_cast<int>(holders_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }

  /// A free block, held once from now on: the one that was freed last, at first the lowest. REQUIRES: num_free() > 0.
  std::int32_t take();

  /// One more table holds the block. REQUIRES: it is held.
  void share(std::int32_t block);

  /// One table fewer holds the block; it is free once none does. REQUIRES: it is held.
  void release(std::int32_t block);

  /// How many tables hold the block; 0 for a free one.
  int holders(std::int32_t block) const { return holders_[block]; }

 private:
  std::vector<int> holders_;
  std::vector<std::int32_t> free_;  // a stack
};

}  // namespace carnot
