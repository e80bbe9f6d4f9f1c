// nn/products.h -- matrix products of every number type, under one name each. Batch-invariant
// (carnot/core/kernel/gemm).
#pragma once

#include <ATen/Functions.h>

#include <cstdint>
#include <type_traits>

#include "carnot/core/kernel/gemm/transpose.h"
#include "carnot/core/nn/number_types.h"
#include "carnot/core/nn/packed_weights.h"

namespace carnot {

/// Rows of a row-major matrix: row i begins at data + i * stride.
template <class S>
struct MatrixRows {
  const S* data = nullptr;
  std::int64_t count = 0;
  std::int64_t stride = 0;
};

template <class S>
MatrixRows<S> matrix_rows(const at::Tensor& x) {
  return {.data = data_of<S>(x), .count = x.size(0), .stride = x.size(1)};
}

/// Where results go; rows are `stride` apart. `add`: add to the current values.
template <class S>
struct MatrixInto {
  S* data = nullptr;
  std::int64_t stride = 0;
  bool add = false;
};

/// out = a b, or += a b. Sums of bfloat16 products are float32; bfloat16 results are rounded once.
template <class T>
void multiply(const MatrixRows<T>& a, const kernel::PackedMatrix<T>& b, const MatrixInto<T>& out) {
  kernel::gemm<T>({.data = a.data, .rows = a.count, .row_stride = a.stride}, b, out.data, out.stride, out.add);
}
inline void multiply(const MatrixRows<kernel::BFloat16>& a, const kernel::PackedBFloat16& b,
                     const MatrixInto<float>& out) {
  kernel::gemm({.data = a.data, .rows = a.count, .row_stride = a.stride}, b, out.data, out.stride, out.add);
}
inline void multiply(const MatrixRows<kernel::BFloat16>& a, const kernel::PackedBFloat16& b,
                     const MatrixInto<kernel::BFloat16>& out, const kernel::BFloat16* bias = nullptr) {
  kernel::gemm({.data = a.data, .rows = a.count, .row_stride = a.stride}, b, out.data, out.stride, out.add, bias);
}

/// out = a^T b, or += a^T b, for the first `columns` columns of a.
template <class S>
void multiply_transposed(const MatrixRows<S>& a, std::int64_t columns, const Packed<S>& b,
                         const MatrixInto<Computed<S>>& out) {
  constexpr std::int64_t kFewColumns = 384;  // read so few times, columns of a are not worth turning: measured
  if constexpr (!std::is_same_v<S, kernel::BFloat16>) {
    if (b.columns() < kFewColumns)
      return kernel::gemm<S>({.data = a.data, .rows = columns, .row_stride = 1, .depth_stride = a.stride}, b, out.data,
                             out.stride, out.add);
  }
  // Rows a multiple of a page apart would compete for few sets of the first-level cache.
  const std::int64_t stride = (a.count + 31) / 32 * 32 + 32;
  const at::Tensor turned = at::empty({columns, stride}, at::TensorOptions().dtype(scalar_type_of<S>()));
  kernel::transpose(a.data, a.count, a.stride, columns, data_of<S>(turned), stride);
  multiply(MatrixRows<S>{data_of<S>(turned), columns, stride}, b, out);
}

}  // namespace carnot
