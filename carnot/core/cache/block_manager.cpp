#include "carnot/core/cache/block_manager.h"

#include "carnot/core/base/check.h"
#include "carnot/core/base/saturating.h"

namespace carnot {

SlotPool::SlotPool(int size) {
  CARNOT_CHECK_GE(size, 0);
  holders_.assign(size, 0);
  free_.reserve(holders_.size());
  for (int slot = size - 1; slot >= 0; --slot) free_.push_back(slot);
}

std::int32_t SlotPool::take() {
  CARNOT_CHECK_GT(num_free(), 0);
  const std::int32_t slot = free_.back();
  free_.pop_back();
  holders_[slot] = 1;
  return slot;
}

void SlotPool::share(std::int32_t slot) {
  CARNOT_CHECK_LT(static_cast<std::size_t>(slot), holders_.size());
  CARNOT_CHECK_GT(holders(slot), 0);
  ++holders_[slot];
}

void SlotPool::release(std::int32_t slot) {
  CARNOT_CHECK_LT(static_cast<std::size_t>(slot), holders_.size());
  CARNOT_CHECK_GT(holders(slot), 0);
  if (--holders_[slot] == 0) free_.push_back(slot);
}

BlockManager::BlockManager(const CacheSize& sizes)
    : size(sizes), blocks(sizes.blocks), states(sizes.states), window_blocks(sizes.window_blocks) {
  if (!size.has_window()) return;
  CARNOT_CHECK_GT(size.window, 0);
  CARNOT_CHECK_GE(size.window_blocks, window_blocks_of_one(size.window));
}

std::int64_t window_blocks_of_one(int window) { return (std::int64_t{window} - 1) / kBlockTokens + 2 + kBlocksOfRun; }

std::int64_t window_blocks_for(int window, std::int64_t sequences, int rows, std::int64_t blocks) {
  const Saturating needed = Saturating(sequences) * window_blocks_of_one(window) + rows / kBlockTokens + 1;
  return needed < blocks ? needed.value() : 0;
}

}  // namespace carnot
