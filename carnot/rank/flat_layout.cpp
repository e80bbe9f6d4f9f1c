#include "carnot/rank/flat_layout.h"

#include <algorithm>

#include "carnot/base/check.h"

namespace carnot {
namespace {

/// The place nearest to `wanted` where a chunk begins or the row ends; of two that are equally near, the earlier.
std::int64_t nearest_cut(const std::vector<std::int64_t>& offsets, std::int64_t wanted, std::int64_t chunk) {
  // The tensor that holds element `wanted`; there is one, since the row is longer.
  const auto after = std::upper_bound(offsets.begin(), offsets.end(), wanted);
  const std::int64_t begin = *(after - 1), end = *after;
  const std::int64_t before = begin + (wanted - begin) / chunk * chunk;
  const std::int64_t behind = std::min(before + chunk, end);
  return behind - wanted < wanted - before ? behind : before;
}

}  // namespace

FlatLayout::FlatLayout(std::span<const std::int64_t> sizes, int slices, std::int64_t chunk) {
  CARNOT_CHECK_GE(slices, 1);
  CARNOT_CHECK_GE(chunk, 1);
  for (const std::int64_t size : sizes) {
    CARNOT_CHECK_GE(size, 0);
    offsets_.push_back(offsets_.back() + size);
  }
  for (int slice = 1; slice < slices; ++slice) {
    const std::int64_t wanted = even_share(size(), slice, slices).begin;
    cuts_.push_back(size() == 0 ? 0 : nearest_cut(offsets_, wanted, chunk));
  }
  cuts_.push_back(size());
}

std::int64_t FlatLayout::longest_slice() const {
  std::int64_t longest = 0;
  for (int s = 0; s < num_slices(); ++s) longest = std::max(longest, slice(s).size());
  return longest;
}

}  // namespace carnot
