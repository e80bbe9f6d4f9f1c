// kernel/attention/bfloat16_blocks.h -- products of bfloat16 attention that read keys and values in place.
//
// Included in bfloat16_table.cpp: everything is in its anonymous namespace, once per kernel set that multiplies in
// vector registers. They add in the order of the set's other products.
#pragma once

#include <cstdint>

#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/gemm/bfloat16_rows.h"
#include "carnot/core/kernel/row_counts.h"

namespace carnot::kernel {
namespace {

/// Vectors of B that are multiplied by `rows` rows together: enough sums to hide the latency of an addition, if there
/// are enough registers.
constexpr int vectors_side_by_side(int rows) {
  if (CARNOT_VECTOR_BYTES < 64) return rows == 1 ? 4 : 2;
  return rows <= 3 ? 8 : rows <= 6 ? 4 : 2;
}

/// Scores of some rows for the positions in vectors [first, first + Vectors) of the blocks.
struct ScoresOf {
  template <int Rows, int Vectors>
  static void add(const BFloat16BlockProduct& in, const LeftValue* a, std::int64_t a_row, int first, float* out) {
    constexpr int kL = kLanes<float>, kOfBlock = kTile / kL;
    Vector<float> sum[Rows][Vectors] = {};
    const BFloat16* b[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) b[v] = in.blocks[(first + v) / kOfBlock] + (first + v) % kOfBlock * 2 * kL;
    for (int d = 0; d < in.dim; d += 2) {
      PairBits pair[Vectors];
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) pair[v] = load_pairs(b[v] + d * kTile);
      add_pair(a + d, a_row, pair, sum);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) store(out + i * in.out_row + (first + v) * kL, sum[i][v]);
  }
  static int depth(const BFloat16BlockProduct& in) { return in.dim; }
  static int vectors(const BFloat16BlockProduct& in) { return in.count * (kTile / kLanes<float>); }
};

/// Sums of some rows' weights times the columns [first, first + Vectors) of the values.
struct WeightedValuesOf {
  template <int Rows, int Vectors>
  static void add(const BFloat16BlockProduct& in, const LeftValue* a, std::int64_t a_row, int first, float* out) {
    constexpr int kL = kLanes<float>;
    Vector<float> sum[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v)
        sum[i][v] = in.go_on ? load(out + i * in.out_row + (first + v) * kL) : Vector<float>{};
    for (int block = 0; block < in.count; ++block, a += kTile) {
      const BFloat16* b = in.blocks[block] + 2 * first * kL;
      for (int j = 0; j < kTile; j += 2, b += 2 * in.dim) {
        PairBits pair[Vectors];
#pragma GCC unroll 16
        for (int v = 0; v < Vectors; ++v) pair[v] = load_pairs(b + 2 * v * kL);
        add_pair(a + j, a_row, pair, sum);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) store(out + i * in.out_row + (first + v) * kL, sum[i][v]);
  }
  static int depth(const BFloat16BlockProduct& in) { return in.count * kTile; }
  static int vectors(const BFloat16BlockProduct& in) { return in.dim / kLanes<float>; }
};

/// Multiplies rows by all vectors: as many as possible together, then the rest.
template <class Product, int Rows, int Vectors>
CARNOT_INLINE void by_vectors(const BFloat16BlockProduct& in, const LeftValue* a, std::int64_t a_row, int first,
                              float* out) {
  const int all = Product::vectors(in);
  for (; first + Vectors <= all; first += Vectors) Product::template add<Rows, Vectors>(in, a, a_row, first, out);
  if constexpr (Vectors > 1) by_vectors<Product, Rows, Vectors / 2>(in, a, a_row, first, out);
}

template <class Product>
void by_rows(const BFloat16BlockProduct& in, int rows, const LeftValue* a, std::int64_t a_row, float* out) {
  with_row_count<kRowTile>(
      rows, [&]<int Rows>() { by_vectors<Product, Rows, vectors_side_by_side(Rows)>(in, a, a_row, 0, out); });
}

template <class Product>
void by_blocks(const BFloat16BlockProduct& in) {
#ifdef CARNOT_BFLOAT16_PAIRS
  const LeftValue* a = in.a;
  const std::int64_t a_row = in.a_row;
#else
  const std::int64_t depth = Product::depth(in), a_row = depth + kWidenedPadding;
  const LeftValue* a = in.widened;
  widen_rows(in.rows, depth, in.a, in.a_row, in.widened);
#endif
  // Tiles have about the same number of rows, so that none is left with few sums.
  const int tiles = (in.rows + kRowTile - 1) / kRowTile, rows = (in.rows + tiles - 1) / tiles;
  for (int row = 0; row < in.rows; row += rows) {
    const int left = in.rows - row;
    by_rows<Product>(in, left < rows ? left : rows, a + row * a_row, a_row, in.out + row * in.out_row);
  }
}

void scores(const BFloat16BlockProduct& in) { by_blocks<ScoresOf>(in); }
void weighted_values(const BFloat16BlockProduct& in) { by_blocks<WeightedValuesOf>(in); }

}  // namespace
}  // namespace carnot::kernel
