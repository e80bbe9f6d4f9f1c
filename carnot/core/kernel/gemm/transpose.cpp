#include "carnot/core/kernel/gemm/transpose.h"

#include <algorithm>

#include "carnot/core/base/thread_pool.h"
#include "carnot/core/kernel/bfloat16.h"

namespace carnot::kernel {
namespace {

typedef std::uint16_t Eight __attribute__((vector_size(16)));
typedef std::uint32_t Four __attribute__((vector_size(16)));
typedef std::uint64_t Two __attribute__((vector_size(16)));

void interleave(Eight a, Eight b, Eight* out) {
  out[0] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  out[1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
void interleave(Four a, Four b, Four* out) {
  out[0] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  out[1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
}
void interleave(Two a, Two b, Two* out) {
  out[0] = __builtin_shufflevector(a, b, 0, 2);
  out[1] = __builtin_shufflevector(a, b, 1, 3);
}

template <int kBytes>
struct RowOf;
template <>
struct RowOf<2> {
  using Type = Eight;
};
template <>
struct RowOf<4> {
  using Type = Four;
};
template <>
struct RowOf<8> {
  using Type = Two;
};

/// As many rows as a vector holds numbers. Each round of interleaving the first half of the rows with the second moves
/// one bit of a number's row to its column.
template <class Number>
void transpose_square(const Number* in, std::int64_t in_stride, Number* out, std::int64_t out_stride) {
  using Row = typename RowOf<sizeof(Number)>::Type;
  constexpr int kSide = sizeof(Row) / sizeof(Number);
  Row rows[kSide], next[kSide];
  for (int i = 0; i < kSide; ++i) __builtin_memcpy(&rows[i], in + i * in_stride, sizeof(Row));
  for (int round = 1; round < kSide; round *= 2) {
    for (int i = 0; i < kSide / 2; ++i) interleave(rows[i], rows[i + kSide / 2], next + 2 * i);
    std::copy(next, next + kSide, rows);
  }
  for (int i = 0; i < kSide; ++i) __builtin_memcpy(out + i * out_stride, &rows[i], sizeof(Row));
}

}  // namespace

template <class Number>
void transpose(const Number* in, std::int64_t rows, std::int64_t in_stride, std::int64_t columns, Number* out,
               std::int64_t out_stride) {
  constexpr std::int64_t kBlock = 64, kSide = 16 / sizeof(Number);
  const std::int64_t across = (columns + kBlock - 1) / kBlock;
  kernel_pool().run((rows + kBlock - 1) / kBlock * across, [&](std::int64_t task) {
    const std::int64_t row_begin = task / across * kBlock, row_end = std::min(rows, row_begin + kBlock);
    const std::int64_t begin = task % across * kBlock, end = std::min(columns, begin + kBlock);
    const std::int64_t whole_rows = row_begin + (row_end - row_begin) / kSide * kSide;
    const std::int64_t whole = begin + (end - begin) / kSide * kSide;
    for (std::int64_t i = row_begin; i < whole_rows; i += kSide)
      for (std::int64_t j = begin; j < whole; j += kSide)
        transpose_square(in + i * in_stride + j, in_stride, out + j * out_stride + i, out_stride);
    for (std::int64_t i = row_begin; i < row_end; ++i)
      for (std::int64_t j = i < whole_rows ? whole : begin; j < end; ++j)
        out[j * out_stride + i] = in[i * in_stride + j];
  });
}

template void transpose(const float*, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t);
template void transpose(const double*, std::int64_t, std::int64_t, std::int64_t, double*, std::int64_t);
template void transpose(const BFloat16*, std::int64_t, std::int64_t, std::int64_t, BFloat16*, std::int64_t);

}  // namespace carnot::kernel
