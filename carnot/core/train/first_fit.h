// train/first_fit.h -- things put into boxes: the largest first, each into the first box that has room for it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace carnot {

/// First-fit by decreasing size; among equals the earlier thing first. A thing that is larger than `room` gets a box of
/// its own. Gives the things of each box, in ascending order. Takes n log n, however many boxes there are.
std::vector<std::vector<std::size_t>> first_fit_decreasing(std::span<const int> sizes, int room);

}  // namespace carnot
