#include "carnot/core/kernel/statistics/selection.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

namespace carnot::kernel {
namespace {

// Floating-point numbers as unsigned integers of the same order: negative ones are mirrored, below positive ones.
template <class T>
using Key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
constexpr Key<T> kSign = Key<T>{1} << (8 * sizeof(T) - 1);

template <class T>
Key<T> key_of(T x) {
  const auto bits = std::bit_cast<Key<T>>(x);
  return bits & kSign<T> ? ~bits : bits | kSign<T>;
}
template <class T>
T value_of(Key<T> key) {
  return std::bit_cast<T>(key & kSign<T> ? key ^ kSign<T> : ~key);
}

/// Removes the last `removed` of the entries that equal `threshold`.
template <class T>
Cut<T> cut_ties(const T* row, std::int64_t n, T threshold, std::int64_t removed) {
  std::int64_t limit = n;
  for (std::int64_t i = n - 1; i >= 0 && removed > 0; --i) {
    if (row[i] != threshold) continue;
    limit = i;
    --removed;
  }
  return {.threshold = threshold, .tie_limit = limit};
}

}  // namespace

template <class T>
Cut<T> cut_lowest(const T* row, std::int64_t n, std::int64_t removed) {
  // Fewer than `removed` entries are below `low`, more below `high`; every pass quarters the keys between.
  Key<T> low = key_of(-std::numeric_limits<T>::infinity()), high = key_of(std::numeric_limits<T>::infinity()) + 1;
  std::int64_t below_low = 0;
  while (high - low > 1) {
    const Key<T> begin = low, last = high - 1, step = std::max<Key<T>>(1, (high - low) / 4);
    T pivots[3];
    std::int64_t below[3];
    for (Key<T> j = 0; j < 3; ++j) pivots[j] = value_of<T>(std::min(last, begin + (j + 1) * step));
    kernel_table<T>().count_below(n, row, pivots, below);
    for (int j = 0; j < 3 && high > last; ++j) {
      if (below[j] == removed) return {.threshold = pivots[j], .tie_limit = n};
      if (below[j] < removed) {
        low = key_of(pivots[j]);
        below_low = below[j];
      } else {
        high = key_of(pivots[j]);
      }
    }
  }
  return cut_ties(row, n, value_of<T>(low), removed - below_low);
}

template Cut<float> cut_lowest(const float*, std::int64_t, std::int64_t);
template Cut<double> cut_lowest(const double*, std::int64_t, std::int64_t);

}  // namespace carnot::kernel
