// env/epoch_order.h -- the order in which training goes through rows: all of them, each epoch in its own order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace carnot {

class EpochOrder {
 public:
  /// `purpose` keys the draws. REQUIRES: rows >= 1.
  EpochOrder(std::size_t rows, std::uint64_t seed, std::string purpose);

  /// The row of training task `index` >= 0. Any thread.
  std::size_t row(std::int64_t index);

 private:
  void shuffle(std::uint64_t epoch);

  std::mutex mutex_{};
  std::vector<std::size_t> order_;
  std::uint64_t seed_;
  std::string purpose_;
  std::uint64_t epoch_ = 0;
};

}  // namespace carnot
