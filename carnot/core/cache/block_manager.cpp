#include "carnot/core/cache/block_manager.h"

#include "carnot/core/base/check.h"

namespace carnot {

BlockManager::BlockManager(int num_blocks) {
  CARNOT_CHECK_GE(num_blocks, 0);
  holders_.assign(num_blocks, 0);
  free_.reserve(holders_.size());
  for (int block = num_blocks - 1; block >= 0; --block) free_.push_back(block);
}

std::int32_t BlockManager::take() {
  CARNOT_CHECK_GT(num_free(), 0);
  const std::int32_t block = free_.back();
  free_.pop_back();
  holders_[block] = 1;
  return block;
}

void BlockManager::share(std::int32_t block) {
  CARNOT_CHECK_LT(static_cast<std::size_t>(block), holders_.size());
  CARNOT_CHECK_GT(holders(block), 0);
  ++holders_[block];
}

void BlockManager::release(std::int32_t block) {
  CARNOT_CHECK_LT(static_cast<std::size_t>(block), holders_.size());
  CARNOT_CHECK_GT(holders(block), 0);
  if (--holders_[block] == 0) free_.push_back(block);
}

}  // namespace carnot
