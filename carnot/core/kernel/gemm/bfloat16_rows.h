// kernel/gemm/bfloat16_rows.h -- bfloat16 products in vector registers: several rows of A by a strip of a panel.
//
// Included in bfloat16_table.cpp: everything is in its anonymous namespace, once per kernel set.
#pragma once

#include <cstdint>

#include "carnot/core/kernel/gemm/bfloat16_output.h"
#include "carnot/core/kernel/row_counts.h"

namespace carnot::kernel {
namespace {

// With sixteen registers: eight sums, four vectors of the panel, and the operands.
constexpr int kRowTile = CARNOT_VECTOR_BYTES < 64 ? 4 : 12;
constexpr int kStrip = 2 * kLanes<float>;  // columns in two vectors of sums

#ifdef CARNOT_BFLOAT16_PAIRS
using LeftValue = BFloat16;
constexpr bool kWidens = false;
#else
using LeftValue = float;
constexpr bool kWidens = true;
#endif

typedef std::int32_t PairBits __attribute__((vector_size(CARNOT_VECTOR_BYTES)));

CARNOT_INLINE PairBits load_pairs(const BFloat16* b) {
  PairBits pair;
  __builtin_memcpy(&pair, b, sizeof(pair));
  return pair;
}

/// Adds depths 2 k and 2 k + 1 of all rows times some vectors of B, each of which holds both depths of its columns.
template <int Rows, int Vectors>
CARNOT_INLINE void add_pair(const LeftValue* a, std::int64_t a_row, const PairBits (&pair)[Vectors],
                            Vector<float> (&sum)[Rows][Vectors]) {
#ifdef CARNOT_BFLOAT16_PAIRS
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    std::int32_t both;
    __builtin_memcpy(&both, a + i * a_row, sizeof(both));
    const auto x = (__m512bh)_mm512_set1_epi32(both);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      sum[i][v] = (Vector<float>)_mm512_dpbf16_ps((__m512)sum[i][v], x, (__m512bh)pair[v]);
  }
#else
  Vector<float> even[Vectors], odd[Vectors];
#pragma GCC unroll 16
  for (int v = 0; v < Vectors; ++v) {
    even[v] = reinterpret_cast<Vector<float> >(pair[v] << 16);
    odd[v] = reinterpret_cast<Vector<float> >(pair[v] & -65536);
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    const Vector<float> x = splat(a[i * a_row]);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) sum[i][v] += x * even[v];
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    const Vector<float> x = splat(a[i * a_row + 1]);
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) sum[i][v] += x * odd[v];
  }
#endif
}

/// What a tile prefetches while it is computed.
enum class Ahead {
  Nothing,
  SamePanel,  ///< what it will soon read itself
  Half,       ///< as many bytes of another panel as it has depth: tiles that share a panel share the next one
  Whole,      ///< all of another panel
};

template <int Rows, Ahead Fetch>
void add_rows(const BFloat16Block& block, const LeftValue* a, std::int64_t a_row, const BFloat16* b, float* sums,
              const char* next) {
  constexpr int kL = kLanes<float>;
  Vector<float> sum[Rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    sum[i][0] = block.first ? Vector<float>{} : load(sums + i * kBFloat16Panel);
    sum[i][1] = block.first ? Vector<float>{} : load(sums + i * kBFloat16Panel + kL);
  }
  for (std::int64_t k = 0; k < block.depth; k += 2) {
    if (Fetch == Ahead::SamePanel) fetch_ahead(b, 2 * CARNOT_VECTOR_BYTES);
    if (Fetch == Ahead::Half || Fetch == Ahead::Whole) {
      constexpr std::int64_t kBytes = Fetch == Ahead::Half ? CARNOT_VECTOR_BYTES : 2 * CARNOT_VECTOR_BYTES;
      for (std::int64_t i = 0; i < kBytes; i += 64) __builtin_prefetch(next + i, 0, 2);
      next += kBytes;
    }
    const PairBits pair[2] = {load_pairs(b), load_pairs(b + CARNOT_VECTOR_BYTES / 2)};
    add_pair(a + k, a_row, pair, sum);
    b += 2 * kBFloat16Panel;
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    store(sums + i * kBFloat16Panel, sum[i][0]);
    store(sums + i * kBFloat16Panel + kL, sum[i][1]);
  }
}

template <Ahead Fetch>
void add_tile(const BFloat16Block& block, int rows, const LeftValue* a, std::int64_t a_row, const BFloat16* b,
              float* sums, const char* next) {
  with_row_count<kRowTile>(rows, [&]<int Rows>() { add_rows<Rows, Fetch>(block, a, a_row, b, sums, next); });
}

using AddTile = void (*)(const BFloat16Block&, int, const LeftValue*, std::int64_t, const BFloat16*, float*,
                         const char*);

/// What the tile at `row` of a panel prefetches, and from where. A single tile reads at the speed of memory. If several
/// share a panel, the first two have time to fetch the next one, one half each.
AddTile tile_that_fetches(const BFloat16Block& block, std::int64_t panel, std::int64_t row, const char*& next) {
  next = reinterpret_cast<const char*>(block.b + (panel + 1) * block.b_panel);
  if (block.b_is_near) return add_tile<Ahead::Nothing>;
  const std::int64_t tile = row / kRowTile, tiles = (block.rows + kRowTile - 1) / kRowTile;
  const bool shares = tiles > 1 && kStrip == kBFloat16Panel;
  if (tile == 0 && (panel == 0 || !shares)) return add_tile<Ahead::SamePanel>;
  if (!shares || panel + 1 == panels_of(block)) return add_tile<Ahead::Nothing>;
  const std::int64_t half = block.depth * kBFloat16Panel;  // bytes
  if (panel == 0) {
    if (tiles == 2) return add_tile<Ahead::Whole>;
    next += (tile - 1) * half;
    return tile <= 2 ? add_tile<Ahead::Half> : add_tile<Ahead::Nothing>;
  }
  next += tile * half;
  return tile < 2 ? add_tile<Ahead::Half> : add_tile<Ahead::Nothing>;
}

#ifndef CARNOT_BFLOAT16_PAIRS
void widen_rows(std::int64_t rows, std::int64_t depth, const BFloat16* a, std::int64_t a_row, float* out) {
  for (std::int64_t i = 0; i < rows; ++i, a += a_row, out += depth + kWidenedPadding)
    for (std::int64_t k = 0; k < depth; ++k) out[k] = widened(a[k]);
}
#endif

void multiply(const BFloat16Block& block) {
#ifdef CARNOT_BFLOAT16_PAIRS
  const LeftValue* a = block.a;
  const std::int64_t a_row = block.a_row;
#else
  widen_rows(block.rows, block.depth, block.a, block.a_row, block.widened);
  const LeftValue* a = block.widened;
  const std::int64_t a_row = block.depth + kWidenedPadding;
#endif
  for (std::int64_t panel = 0; panel < panels_of(block); ++panel) {
    const BFloat16* b = block.b + panel * block.b_panel;
    for (std::int64_t row = 0; row < block.rows; row += kRowTile) {
      const std::int64_t left = block.rows - row;
      const int rows = static_cast<int>(left < kRowTile ? left : kRowTile);
      float* sums = sums_of(block, panel, row, 0);
      for (int j = 0; j < kBFloat16Panel; j += kStrip) {
        const char* next = nullptr;
        const AddTile add = tile_that_fetches(block, panel, row, next);
        add(block, rows, a + row * a_row, a_row, b + 2 * j, sums + j, next);
      }
      if (!block.last) continue;
      for (int i = 0; i < rows; ++i) write_row(block, panel, row + i, sums + i * kBFloat16Panel);
    }
  }
}

}  // namespace
}  // namespace carnot::kernel
