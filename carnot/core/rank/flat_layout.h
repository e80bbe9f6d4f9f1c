// rank/flat_layout.h -- a model's tensors as one row of numbers, cut into buckets, and each bucket into one part for
// each rank.
//
// A bucket is what travels at a time; its parts are about as long as each other, so that all ranks send and receive as
// much. A rank's slice is its part of every bucket, one after the other. Buckets and parts end where a chunk of a
// tensor ends: a tensor's chunks are counted from its own beginning, so sums over chunks are the same however the row
// is cut.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "carnot/core/rank/shares.h"

namespace carnot {

/// What of a tensor lies in some range of the row.
struct TensorPiece {
  std::size_t tensor = 0;
  IndexRange in_tensor{}, in_range{};
};

class FlatLayout {
 public:
  /// `sizes` are the tensors' numbers of elements, in order. Buckets have about `bucket` elements, and they and their
  /// parts are as even as chunks of `chunk` elements allow. REQUIRES: ranks, chunk, bucket >= 1; no size is negative.
  FlatLayout(std::span<const std::int64_t> sizes, int ranks, std::int64_t chunk, std::int64_t bucket);

  std::int64_t size() const { return offsets_.back(); }
  /// Where tensor number `tensor` lies in the row.
  IndexRange tensor(std::size_t tensor) const { return {.begin = offsets_[tensor], .end = offsets_[tensor + 1]}; }
  std::size_t num_tensors() const { return offsets_.size() - 1; }
  /// What lies in a range of the row, in order. Empty tensors lie nowhere.
  std::vector<TensorPiece> pieces(const IndexRange& range) const;

  int num_ranks() const { return ranks_; }
  int num_buckets() const { return buckets_; }
  IndexRange bucket(int bucket) const {
    return {.begin = cuts_[first_cut(bucket)], .end = cuts_[first_cut(bucket + 1)]};
  }
  /// Where a rank's part of a bucket lies in the row.
  IndexRange part(int bucket, int rank) const {
    const std::size_t cut = first_cut(bucket) + static_cast<std::size_t>(rank);
    return {.begin = cuts_[cut], .end = cuts_[cut + 1]};
  }
  /// Numbers of elements of a bucket's parts, by rank.
  std::vector<std::int64_t> part_sizes(int bucket) const;

  std::int64_t slice_size(int rank) const { return place_in_slice(buckets_ - 1, rank).end; }
  /// Where a rank's part of a bucket lies in the rank's slice.
  IndexRange place_in_slice(int bucket, int rank) const {
    const std::int64_t begin = places_[first_cut(bucket) + static_cast<std::size_t>(rank)];
    return {.begin = begin, .end = begin + part(bucket, rank).size()};
  }

 private:
  std::size_t first_cut(int bucket) const {
    return static_cast<std::size_t>(bucket) * static_cast<std::size_t>(ranks_);
  }

  int ranks_, buckets_ = 1;
  std::vector<std::int64_t> offsets_{0};
  std::vector<std::int64_t> cuts_{0};   ///< where each part begins, bucket by bucket, and the row's end
  std::vector<std::int64_t> places_{};  ///< where each part begins in its rank's slice
};

}  // namespace carnot
