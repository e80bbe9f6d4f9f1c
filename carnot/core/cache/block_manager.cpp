#include "carnot/core/cache/block_manager.h"

#include "carnot/core/base/check.h"

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

}  // namespace carnot
