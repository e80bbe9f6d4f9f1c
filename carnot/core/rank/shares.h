// rank/shares.h -- how work is shared out among ranks: the same answer on each of them, from the same numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace carnot {

/// Indices [begin, end).
struct IndexRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const IndexRange&) const = default;
};

/// The part of [0, count) that is `part`'s, of `parts`. Neighbouring parts meet, and sizes differ by one at most.
/// REQUIRES: 0 <= part < parts.
IndexRange even_share(std::int64_t count, int part, int parts);

/// Which of `parts` each thing goes to: the largest first, each to the part that has least so far; among equals the
/// lower number. A function of sizes and parts alone. REQUIRES: parts >= 1; no size is negative.
std::vector<int> shares_by_size(std::span<const std::int64_t> sizes, int parts);

}  // namespace carnot
