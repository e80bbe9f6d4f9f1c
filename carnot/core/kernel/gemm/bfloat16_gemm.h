// kernel/gemm/bfloat16_gemm.h -- batch-invariant products of bfloat16 matrices with float32 sums.
//
// A row's result is the same in any batch and on any number of threads. The order of additions is the kernel set's
// (bfloat16_kernels.h), so bits can differ between processors.
//
// The three products of a linear layer y = x W^T with W [N, K] and T tokens:
//   y  [T, N]   W packed by pack_transposed(W, K), multiplied by the rows of x
//   dx [T, K]   W packed by pack(W, K), multiplied by the rows of dy
//   dW [N, K]   x packed by pack(x, K), multiplied by the rows of transpose(dy) (transpose.h)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "carnot/core/kernel/bfloat16.h"
#include "carnot/core/kernel/gemm/bfloat16_kernels.h"

namespace carnot::kernel {

/// Row i begins at data + i * row_stride; the function that takes the rows defines their length.
struct BFloat16Rows {
  const BFloat16* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t row_stride = 0;
};

/// Matrix B [depth, columns] in the panels that all kernel sets read. Packing costs about as much as multiplying a few
/// rows, so weights are packed once per change.
class PackedBFloat16 {
 public:
  /// B(k, j) = element k of row j: weights [columns, depth], concatenated by rows, for x W^T.
  void pack_transposed(std::span<const BFloat16Rows> weights, std::int64_t depth);

  /// B(k, j) = element j of row k: matrices [depth, columns], concatenated by rows.
  void pack(std::span<const BFloat16Rows> matrices, std::int64_t columns);

  /// A view of columns [first, first + count); this matrix must outlive it unchanged. REQUIRES: `first` is a multiple
  /// of kBFloat16Panel, and so is `count` unless the range ends with the matrix.
  PackedBFloat16 view_of_columns(std::int64_t first, std::int64_t count) const;

  std::int64_t depth() const { return depth_; }
  std::int64_t columns() const { return columns_; }
  /// Elements from one panel to the next.
  std::int64_t panel_size() const { return padded_depth_ * kBFloat16Panel; }
  const BFloat16* panel(std::int64_t index) const { return data_.get() + index * panel_size(); }

 private:
  void resize(std::int64_t depth, std::int64_t columns);

  struct Free {
    bool borrows;
    void operator()(BFloat16* p) const;
  };
  using Memory = std::unique_ptr<BFloat16[], Free>;

  Memory data_{};
  std::int64_t capacity_ = 0;
  std::int64_t depth_ = 0;
  std::int64_t padded_depth_ = 0;
  std::int64_t columns_ = 0;
};

/// C [a.rows, b.columns()] = A B, where A's rows have b.depth() elements; with `accumulate`, C += A B.
void gemm(const BFloat16Rows& a, const PackedBFloat16& b, float* c, std::int64_t c_row, bool accumulate);
/// The same, with each sum rounded to bfloat16 once, after adding its column's bias (null: none) and, with
/// `accumulate`, the current value.
void gemm(const BFloat16Rows& a, const PackedBFloat16& b, BFloat16* c, std::int64_t c_row, bool accumulate = false,
          const BFloat16* bias = nullptr);
/// The same with a given kernel set.
void gemm(const BFloat16Kernels& kernels, const BFloat16Rows& a, const PackedBFloat16& b, const BFloat16Output& c);

/// A block of C that was just computed: sums[i * row_stride + j] belongs to row `row` + i, column `column` + j.
struct ProductBlock {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t column = 0;
  std::int64_t columns = 0;
  float* sums = nullptr;
  std::int64_t row_stride = 0;
};

/// C = A B, `columns` columns at a time (a multiple of kBFloat16Panel): `use` gets each block on the thread that
/// computed it, while it is in the cache. The block is a part of `c` or, if that is null, of memory that the thread's
/// next block overwrites.
void gemm_by_blocks(const BFloat16Kernels& kernels, const BFloat16Rows& a, const PackedBFloat16& b,
                    std::int64_t columns, float* c, std::int64_t c_row,
                    const std::function<void(const ProductBlock&)>& use);

/// Computes a block over all of its `depth` on this thread, in chunks whose rows of A stay in the second-level cache.
/// If the last step is not filled by A's rows, it is read from a copy padded with zeros. If `block` has no memory for
/// sums, memory of this thread is used. A range that is not the last leaves its sums there, to be continued by the next
/// call (with this thread's memory: on this thread).
void multiply_block(const BFloat16Kernels& kernels, BFloat16Block block, std::int64_t depth);

}  // namespace carnot::kernel
