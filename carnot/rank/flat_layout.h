// rank/flat_layout.h -- a model's tensors as one row of numbers, cut into one slice for each rank.
//
// A slice ends where a chunk of a tensor ends: a tensor's chunks are counted from its own beginning, so sums over
// chunks are the same however many slices there are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "carnot/rank/shares.h"

namespace carnot {

class FlatLayout {
 public:
  /// `sizes` are the tensors' numbers of elements, in order. Slices are as even as chunks of `chunk` elements allow.
  /// REQUIRES: slices >= 1; chunk >= 1; no size is negative.
  FlatLayout(std::span<const std::int64_t> sizes, int slices, std::int64_t chunk);

  std::int64_t size() const { return offsets_.back(); }
  /// Where tensor number `tensor` lies in the row.
  IndexRange tensor(std::size_t tensor) const { return {.begin = offsets_[tensor], .end = offsets_[tensor + 1]}; }
  std::size_t num_tensors() const { return offsets_.size() - 1; }

  int num_slices() const { return static_cast<int>(cuts_.size()) - 1; }
  IndexRange slice(int slice) const { return {.begin = cuts_[slice], .end = cuts_[slice + 1]}; }
  std::int64_t longest_slice() const;

 private:
  std::vector<std::int64_t> offsets_{0};
  std::vector<std::int64_t> cuts_{0};
};

}  // namespace carnot
