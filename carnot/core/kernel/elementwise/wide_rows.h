// kernel/elementwise/wide_rows.h -- single rows between their stored and their computed type. Internal to the room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "carnot/core/kernel/dispatch.h"

namespace carnot::kernel {

/// Row x in the computed type: x itself, or widened into `scratch`.
template <class S>
const Computed<S>* wide_row(std::int64_t n, const S* x, [[maybe_unused]] Computed<S>* scratch) {
  if constexpr (std::is_same_v<S, Computed<S>>) {
    return x;
  } else {
    storage_table<S>().widen(n, x, scratch);
    return scratch;
  }
}
template <class S>
void copy_wide(std::int64_t n, const S* x, Computed<S>* y) {
  if constexpr (std::is_same_v<S, Computed<S>>) {
    std::copy_n(x, n, y);
  } else {
    storage_table<S>().widen(n, x, y);
  }
}
template <class S>
void store_row(std::int64_t n, const Computed<S>* x, S* y) {
  if constexpr (std::is_same_v<S, Computed<S>>) {
    std::copy_n(x, n, y);
  } else {
    storage_table<S>().round(n, x, y);
  }
}

}  // namespace carnot::kernel
