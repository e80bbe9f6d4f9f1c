// cache/block_manager.h -- which KV blocks are free, and how many tables share each of the others.
//
// Manages block numbers only: no tensors, layers or tokens. Not thread-safe; the engine owns the manager and uses it
// from one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "carnot/core/base/kv_block.h"

namespace carnot {

class BlockManager {
 public:
  /// Blocks 0 to num_blocks - 1, all free.
  explicit BlockManager(int num_blocks);

  int size() const { return static_cast<int>(holders_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }

  /// Takes a free block, which one table then holds: the most recently freed one, initially the lowest. REQUIRES:
  /// num_free() > 0.
  std::int32_t take();

  /// One more table holds the block. REQUIRES: the block is held.
  void share(std::int32_t block);

  /// One table fewer holds the block, which is free once no table does. REQUIRES: the block is held.
  void release(std::int32_t block);

  /// Number of tables that hold the block; 0 if it is free.
  int holders(std::int32_t block) const { return holders_[block]; }

 private:
  std::vector<int> holders_;
  std::vector<std::int32_t> free_;  // a stack
};

}  // namespace carnot
