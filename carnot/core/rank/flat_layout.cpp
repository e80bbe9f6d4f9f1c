#include "carnot/core/rank/flat_layout.h"

#include <algorithm>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

/// The place nearest to `wanted` where a chunk begins or the row ends; of two that are equally near, the earlier.
std::int64_t nearest_cut(const std::vector<std::int64_t>& offsets, std::int64_t wanted, std::int64_t chunk) {
  if (wanted >= offsets.back()) return offsets.back();
  // The tensor that holds element `wanted`; there is one, since the row is longer.
  const auto after = std::upper_bound(offsets.begin(), offsets.end(), wanted);
  const std::int64_t begin = *(after - 1), end = *after;
  const std::int64_t before = begin + (wanted - begin) / chunk * chunk;
  const std::int64_t behind = std::min(before + chunk, end);
  return behind - wanted < wanted - before ? behind : before;
}

}  // namespace

FlatLayout::FlatLayout(std::span<const std::int64_t> sizes, int ranks, std::int64_t chunk, std::int64_t bucket)
    : ranks_(ranks) {
  CARNOT_CHECK_GE(ranks, 1);
  CARNOT_CHECK_GE(chunk, 1);
  CARNOT_CHECK_GE(bucket, 1);
  for (const std::int64_t size : sizes) {
    CARNOT_CHECK_GE(size, 0);
    offsets_.push_back(offsets_.back() + size);
  }
  buckets_ = static_cast<int>(std::max<std::int64_t>(1, (size() + bucket - 1) / bucket));
  const auto begin_of_bucket = [&](int b) {
    return nearest_cut(offsets_, even_share(size(), b, buckets_).begin, chunk);
  };
  std::vector<std::int64_t> slices(static_cast<std::size_t>(ranks), 0);
  for (int b = 0; b < buckets_; ++b) {
    const std::int64_t begin = cuts_.back(), end = b + 1 < buckets_ ? begin_of_bucket(b + 1) : size();
    for (int r = 0; r < ranks; ++r) {
      const std::int64_t wanted = begin + even_share(end - begin, r, ranks).end;
      cuts_.push_back(r + 1 < ranks ? nearest_cut(offsets_, wanted, chunk) : end);
      places_.push_back(slices[static_cast<std::size_t>(r)]);
      slices[static_cast<std::size_t>(r)] += part(b, r).size();
    }
  }
}

std::vector<TensorPiece> FlatLayout::pieces(const IndexRange& range) const {
  std::vector<TensorPiece> all;
  if (range.size() == 0) return all;
  const auto first = std::upper_bound(offsets_.begin(), offsets_.end(), range.begin) - offsets_.begin() - 1;
  for (auto t = static_cast<std::size_t>(first); t < num_tensors() && offsets_[t] < range.end; ++t) {
    const IndexRange place = tensor(t);
    const std::int64_t begin = std::max(place.begin, range.begin), end = std::min(place.end, range.end);
    if (begin >= end) continue;
    all.push_back({.tensor = t,
                   .in_tensor = {.begin = begin - place.begin, .end = end - place.begin},
                   .in_range = {.begin = begin - range.begin, .end = end - range.begin}});
  }
  return all;
}

std::vector<std::int64_t> FlatLayout::part_sizes(int bucket) const {
  std::vector<std::int64_t> sizes;
  for (int r = 0; r < ranks_; ++r) sizes.push_back(part(bucket, r).size());
  return sizes;
}

}  // namespace carnot
