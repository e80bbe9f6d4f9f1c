// kernel/gemm/tile.h -- the inner loop of the matrix products.
//
// Included in kernel_table.cpp: everything is in its anonymous namespace, once per instruction set.
#pragma once

#include <cstdint>

#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/row_counts.h"
#include "carnot/core/kernel/vectors.h"

namespace carnot::kernel {
namespace {

template <class T, int Rows>
CARNOT_INLINE void gemm_rows(int columns, std::int64_t depth, const T* a, std::int64_t a_row, std::int64_t a_depth,
                             const T* b, T* c, std::int64_t c_row, bool accumulate) {
  constexpr int kL = kLanes<T>;
  Vector<T> sum[Rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) sum[i][0] = sum[i][1] = Vector<T>{};
  for (std::int64_t k = 0; k < depth; ++k) {
    const Vector<T> b0 = load(b + k * 2 * kL);
    const Vector<T> b1 = load(b + k * 2 * kL + kL);
    const T* a_k = a + k * a_depth;
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Vector<T> x = splat(a_k[i * a_row]);
      sum[i][0] += x * b0;
      sum[i][1] += x * b1;
    }
  }
  if (columns == 2 * kL) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      T* out = c + i * c_row;
      if (accumulate) {
        sum[i][0] += load(out);
        sum[i][1] += load(out + kL);
      }
      store(out, sum[i][0]);
      store(out + kL, sum[i][1]);
    }
    return;
  }
  T row[2 * kL];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    store(row, sum[i][0]);
    store(row + kL, sum[i][1]);
    T* out = c + i * c_row;
    for (int j = 0; j < columns; ++j) out[j] = accumulate ? out[j] + row[j] : row[j];
  }
}

template <class T>
void gemm_tile(int rows, int columns, std::int64_t depth, const T* a, std::int64_t a_row, std::int64_t a_depth,
               const T* b, T* c, std::int64_t c_row, bool accumulate) {
  with_row_count<CARNOT_ROW_TILE>(
      rows, [&]<int Rows>() { gemm_rows<T, Rows>(columns, depth, a, a_row, a_depth, b, c, c_row, accumulate); });
}

}  // namespace
}  // namespace carnot::kernel
