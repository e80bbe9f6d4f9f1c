#include "carnot/core/rank/shares.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "carnot/core/base/check.h"

namespace carnot {

IndexRange even_share(std::int64_t count, int part, int parts) {
  CARNOT_CHECK_GE(part, 0);
  CARNOT_CHECK_LT(part, parts);
  // count * part / parts without a product that could overflow.
  const auto cut = [&](std::int64_t at) { return count / parts * at + count % parts * at / parts; };
  return {.begin = cut(part), .end = cut(part + 1)};
}

std::vector<int> shares_by_size(std::span<const std::int64_t> sizes, int parts) {
  CARNOT_CHECK_GE(parts, 1);
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  using Load = std::pair<std::int64_t, int>;  // what a part has, and its number
  std::priority_queue<Load, std::vector<Load>, std::greater<>> lightest;
  for (int part = 0; part < parts; ++part) lightest.emplace(0, part);
  std::vector<int> shares(sizes.size());
  for (const std::size_t thing : order) {
    CARNOT_CHECK_GE(sizes[thing], 0);
    const auto [load, part] = lightest.top();
    lightest.pop();
    shares[thing] = part;
    lightest.emplace(load + sizes[thing], part);
  }
  return shares;
}

}  // namespace carnot
