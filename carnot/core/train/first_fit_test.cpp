#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "carnot/core/base/random.h"
#include "carnot/core/train/packing.h"

namespace carnot {
namespace {

using Boxed = std::vector<std::vector<std::size_t>>;

/// By definition: every bin is tried.
Boxed looked_for(const std::vector<int>& sizes, int room) {
  std::vector<std::pair<int, std::size_t>> order;
  for (std::size_t i = 0; i < sizes.size(); ++i) order.emplace_back(-sizes[i], i);
  std::sort(order.begin(), order.end());
  Boxed boxes;
  std::vector<int> used;
  for (const auto& [negative, thing] : order) {
    std::size_t box = 0;
    while (box < boxes.size() && used[box] - negative > room) ++box;
    if (box == boxes.size()) {
      boxes.emplace_back();
      used.push_back(0);
    }
    boxes[box].push_back(thing);
    used[box] -= negative;
  }
  for (auto& box : boxes) std::sort(box.begin(), box.end());
  return boxes;
}

TEST(FirstFit, EqualsASearchThroughAllBins) {
  RandomStream random(3);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<int> sizes(random.below(60));
    const int largest = 1 + static_cast<int>(random.below(40));
    for (int& size : sizes) size = static_cast<int>(random.below(static_cast<std::uint64_t>(largest) + 1));
    const int room = 1 + static_cast<int>(random.below(60));
    EXPECT_EQ(first_fit_decreasing(sizes, room), looked_for(sizes, room));
  }
}

TEST(FirstFit, GivesAnItemThatIsTooLargeItsOwnBin) {
  EXPECT_EQ(first_fit_decreasing(std::vector<int>{3, 9, 1}, 4), (Boxed{{1}, {0, 2}}));
  EXPECT_EQ(first_fit_decreasing({}, 4), Boxed{});
}

}  // namespace
}  // namespace carnot
