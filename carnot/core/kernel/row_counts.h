// kernel/row_counts.h -- an instance of a loop for each number of rows, chosen at run time. Every instance adds in the
// same order.
//
// Included in the sources that are compiled once per instruction set: everything is in their anonymous namespace.
#pragma once

#include "carnot/core/kernel/vectors.h"

namespace carnot::kernel {
namespace {

/// Calls call<rows>() if 1 <= rows <= Most; otherwise does nothing.
template <int Most, class Call>
CARNOT_INLINE void with_row_count(int rows, const Call& call) {
  if constexpr (Most > 0) {
    if (rows == Most) return call.template operator()<Most>();
    with_row_count<Most - 1>(rows, call);
  }
}

}  // namespace
}  // namespace carnot::kernel
