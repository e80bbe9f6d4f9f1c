// kernel/gemm/bfloat16_tiles.h -- bfloat16 products in the tile registers of AMX: 32 rows of A by a panel.
//
// Part of bfloat16_table.cpp: everything is in its anonymous namespace, compiled for AMX only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "carnot/kernel/gemm/bfloat16_output.h"

namespace carnot::kernel {
namespace {

constexpr int kTileRows = 16;
constexpr bool kWidens = false;

/// The operand of LDTILECFG.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileShapes) == 64);

/// Registers 0 and 1 hold sums of the upper rows (two halves of the panel), 2 and 3 those of the lower rows, 4 and 5 hold
/// A's rows, 6 and 7 the halves of the panel.
void shape_tiles(int rows) {
  const int upper = rows < kTileRows ? rows : kTileRows;
  const int lower = rows - upper;
  const int rows_of[8] = {upper, upper, lower, lower, upper, lower, kTileRows, kTileRows};
  TileShapes shapes;
  for (int i = 0; i < 8; ++i) {
    shapes.rows[i] = static_cast<std::uint8_t>(rows_of[i]);
    shapes.row_bytes[i] = rows_of[i] > 0 ? 64 : 0;
  }
  _tile_loadconfig(&shapes);
}

template <bool Lower, bool Fetch>
CARNOT_INLINE void add_tiles(const BFloat16Block& block, const BFloat16* a, const BFloat16* b, float* sums) {
  constexpr int kSumBytes = kBFloat16Panel * 4, kPanelBytes = kBFloat16Panel * 4;
  const auto a_bytes = static_cast<std::size_t>(block.a_row) * sizeof(BFloat16);
  float* lower_sums = sums + kTileRows * kBFloat16Panel;
  if (block.first) {
    _tile_zero(0);
    _tile_zero(1);
    if (Lower) _tile_zero(2);
    if (Lower) _tile_zero(3);
  } else {
    _tile_loadd(0, sums, kSumBytes);
    _tile_loadd(1, sums + 16, kSumBytes);
    if (Lower) _tile_loadd(2, lower_sums, kSumBytes);
    if (Lower) _tile_loadd(3, lower_sums + 16, kSumBytes);
  }
  for (std::int64_t k = 0; k < block.depth; k += kBFloat16Depth) {
    if (Fetch) fetch_ahead(b, kBFloat16Depth * kBFloat16Panel * sizeof(BFloat16));
    _tile_loadd(6, b, kPanelBytes);
    _tile_loadd(4, a + k, a_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if (Lower) _tile_loadd(5, a + kTileRows * block.a_row + k, a_bytes);
    if (Lower) _tile_dpbf16ps(2, 5, 6);
    _tile_loadd(7, b + 32, kPanelBytes);
    _tile_dpbf16ps(1, 4, 7);
    if (Lower) _tile_dpbf16ps(3, 5, 7);
    b += kBFloat16Depth * kBFloat16Panel;
  }
  _tile_stored(0, sums, kSumBytes);
  _tile_stored(1, sums + 16, kSumBytes);
  if (Lower) _tile_stored(2, lower_sums, kSumBytes);
  if (Lower) _tile_stored(3, lower_sums + 16, kSumBytes);
}

/// All panels by rows [first, end), `step` at a time.
void multiply_rows(const BFloat16Block& block, std::int64_t first, std::int64_t end, int step) {
  if (first == end) return;
  shape_tiles(step);
  const bool fetch = block.rows <= kFewRows;
  const auto add = step > kTileRows ? (fetch ? add_tiles<true, true> : add_tiles<true, false>)
                                    : (fetch ? add_tiles<false, true> : add_tiles<false, false>);
  for (std::int64_t panel = 0; panel < panels_of(block); ++panel) {
    const BFloat16* b = block.b + panel * block.b_panel;
    for (std::int64_t row = first; row < end; row += step) {
      float* sums = sums_of(block, panel, row);
      add(block, block.a + row * block.a_row, b, sums);
      if (block.last) write_tile(block, panel, row, step, sums);
    }
  }
}

void multiply(const BFloat16Block& block) {
  constexpr int kStep = 2 * kTileRows;
  const std::int64_t whole = block.rows / kStep * kStep;
  multiply_rows(block, 0, whole, kStep);
  multiply_rows(block, whole, block.rows, static_cast<int>(block.rows - whole));
  _tile_release();
}

}  // namespace
}  // namespace carnot::kernel
