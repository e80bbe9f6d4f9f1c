#include "carnot/core/env/epoch_order.h"

#include <numeric>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"

namespace carnot {

EpochOrder::EpochOrder(std::size_t rows, std::uint64_t seed, std::string purpose)
    : order_(rows), seed_(seed), purpose_(std::move(purpose)) {
  CARNOT_CHECK(rows > 0, "there is a row to begin with");
  shuffle(0);
}

std::size_t EpochOrder::row(std::int64_t index) {
  CARNOT_CHECK_GE(index, 0);
  const auto number = static_cast<std::uint64_t>(index);
  const std::scoped_lock lock(mutex_);
  if (number / order_.size() != epoch_) shuffle(number / order_.size());
  return order_[number % order_.size()];
}

void EpochOrder::shuffle(std::uint64_t epoch) {
  epoch_ = epoch;
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  RandomStream(derive_seed(seed_, purpose_, epoch)).shuffle(order_);
}

}  // namespace carnot
