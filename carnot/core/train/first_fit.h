// train/first_fit.h -- bin packing: the largest item first, each into the first bin that has room for it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace carnot {

/// First-fit by decreasing size; among equals the earlier item first. An item larger than `room` gets its own bin.
/// Returns the items of each bin, in ascending order. Takes O(n log n) time.
std::vector<std::vector<std::size_t>> first_fit_decreasing(std::span<const int> sizes, int room);

}  // namespace carnot
