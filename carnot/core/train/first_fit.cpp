#include "carnot/core/train/first_fit.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>

namespace carnot {
namespace {

/// Bins by number, with the room that each has left; one that is not open yet takes anything.
class Boxes {
 public:
  explicit Boxes(std::size_t most) : leaves_(std::bit_ceil(std::max<std::size_t>(1, most))), left_(2 * leaves_, kAny) {}

  /// The first bin that has room for `size`.
  std::size_t first(std::int64_t size) const {
    std::size_t node = 1;
    while (node < leaves_) node = left_[2 * node] >= size ? 2 * node : 2 * node + 1;
    return node - leaves_;
  }

  void put(std::size_t box, std::int64_t size, std::int64_t room) {
    std::size_t node = leaves_ + box;
    left_[node] = (left_[node] == kAny ? room : left_[node]) - size;
    for (node /= 2; node > 0; node /= 2) left_[node] = std::max(left_[2 * node], left_[2 * node + 1]);
  }

 private:
  static constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

  std::size_t leaves_;
  std::vector<std::int64_t> left_;  ///< a tree: each node has the most of its two children
};

}  // namespace

std::vector<std::vector<std::size_t>> first_fit_decreasing(std::span<const int> sizes, int room) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  Boxes boxes(sizes.size());
  std::vector<std::vector<std::size_t>> things;
  for (const std::size_t thing : order) {
    const std::size_t box = boxes.first(sizes[thing]);
    boxes.put(box, sizes[thing], room);
    if (box == things.size()) things.emplace_back();
    things[box].push_back(thing);
  }
  for (auto& in_box : things) std::sort(in_box.begin(), in_box.end());
  return things;
}

}  // namespace carnot
