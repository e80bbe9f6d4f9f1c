// kernel/gemm/gemm.h -- batch-invariant matrix products: a row's result is the same in any batch.
//
// C(i, j) is summed over depth in a fixed order, in chunks of 256, whatever the number of rows, columns or threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace carnot::kernel {

/// Matrix B [depth, columns] cut into panels that the inner loop reads in order. Packing costs about as much as
/// multiplying a few rows, so weights are packed once per change.
template <class T>
class PackedMatrix {
 public:
  PackedMatrix() = default;

  /// B(k, j) = rows[j * row_stride + k]: a weight [columns, depth] for x W^T. Several weights are concatenated by rows.
  struct Rows {
    const T* data = nullptr;
    std::int64_t count = 0;
    std::int64_t row_stride = 0;
  };
  void pack_transposed(std::span<const Rows> weights, std::int64_t depth);

  /// B(k, j) = rows[k * row_stride + j], the weights concatenated in depth.
  void pack(std::span<const Rows> weights, std::int64_t columns);

  std::int64_t depth() const { return depth_; }
  std::int64_t columns() const { return columns_; }
  const T* panel(std::int64_t index) const { return data_.get() + index * depth_ * panel_; }

 private:
  void resize(std::int64_t depth, std::int64_t columns);

  struct Free {
    void operator()(T* p) const;
  };
  std::unique_ptr<T[], Free> data_;
  std::int64_t capacity_ = 0;
  std::int64_t depth_ = 0;
  std::int64_t columns_ = 0;
  int panel_ = 0;
};

/// A(i, k) = data[i * row_stride + k * depth_stride].
template <class T>
struct StridedMatrix {
  const T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_stride = 0;
  std::int64_t depth_stride = 1;
};

/// C [A.rows, B.columns] = A B, or += if `accumulate`. C's rows are c_row apart.
template <class T>
void gemm(const StridedMatrix<T>& a, const PackedMatrix<T>& b, T* c, std::int64_t c_row, bool accumulate);

}  // namespace carnot::kernel
