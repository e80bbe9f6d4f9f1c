// env/epoch_order.h -- the order in which training goes through rows: all of them, each epoch in its own order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"

namespace carnot {

class EpochOrder {
 public:
  /// `purpose` keys the draws. REQUIRES: rows >= 1.
  EpochOrder(std::size_t rows, std::uint64_t seed, std::string purpose)
      : order_(rows), seed_(seed), purpose_(std::move(purpose)) {
    CARNOT_CHECK(rows > 0, "there is a row to begin with");
    shuffle(0);
  }

  /// The row of training task `index` >= 0. Any thread.
  std::size_t row(std::int64_t index) {
    CARNOT_CHECK_GE(index, 0);
    const auto number = static_cast<std::uint64_t>(index);
    const std::scoped_lock lock(mutex_);
    if (number / order_.size() != epoch_) shuffle(number / order_.size());
    return order_[number % order_.size()];
  }

 private:
  void shuffle(std::uint64_t epoch) {
    epoch_ = epoch;
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    RandomStream(derive_seed(seed_, purpose_, epoch)).shuffle(order_);
  }

  std::mutex mutex_{};
  std::vector<std::size_t> order_;
  std::uint64_t seed_;
  std::string purpose_;
  std::uint64_t epoch_ = 0;
};

}  // namespace carnot
