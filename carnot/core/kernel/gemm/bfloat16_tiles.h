// kernel/gemm/bfloat16_tiles.h -- bfloat16 products in the tile registers of AMX: 32 rows of A by a panel.
//
// Included in bfloat16_table.cpp: everything is in its anonymous namespace, compiled for AMX only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "carnot/core/kernel/gemm/bfloat16_output.h"

namespace carnot::kernel {
namespace {

constexpr int kTileRows = 16;
constexpr int kRowTile = 2 * kTileRows;
constexpr std::int64_t kFewRows = 32;
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

/// Registers 0 and 1 hold sums of the upper rows (two halves of the panel), 2 and 3 those of the lower rows, 4 and 5
/// hold A's rows, 6 and 7 the halves of the panel.
void shape_tiles(int rows) {
  const int upper = rows < kTileRows ? rows : kTileRows;
  const int lower = rows - upper;
  const int rows_of[8] = {upper, upper, lower, lower, upper, lower, kTileRows, kTileRows};
  TileShapes shapes;
  for (int i = 0; i < 8; ++i) {
    shapes.rows[i] = static_cast<std::uint8_t>(rows_of[i]);
    shapes.row_bytes[i] = rows_of[i] > 0 ? 64 : 0;
  }
  asm volatile("" : : "r"(&shapes) : "memory");  // GCC 12's intrinsic declares only eight of the 64 bytes as read
  _tile_loadconfig(&shapes);
}

/// The finished sums of a tile, which are written while the next one is computed: if they were written at once, they
/// and the tile registers would wait for each other.
struct FinishedTile {
  const float* sums = nullptr;
  std::int64_t panel = 0;
  std::int64_t row = 0;
  int rows = 0;
};

/// The address of row `row` of a panel in the result, for prefetching.
CARNOT_INLINE const void* place_of(const BFloat16Block& block, std::int64_t panel, std::int64_t row) {
  const std::int64_t begin = row * block.out.row_stride + panel * kBFloat16Panel;
  if (block.out.rounded != nullptr) return block.out.rounded + begin;
  return block.out.sums + begin;
}

CARNOT_INLINE void write_rows(const BFloat16Block& block, FinishedTile& tile, int most) {
  constexpr int kAhead = 8;
  for (int i = 0; i < most && tile.rows > 0; ++i, --tile.rows, ++tile.row, tile.sums += kBFloat16Panel) {
    if (tile.rows > kAhead) __builtin_prefetch(place_of(block, tile.panel, tile.row + kAhead), 1);
    write_row(block, tile.panel, tile.row, tile.sums);
  }
}

/// Prefetches what the next step reads of A, whose rows are too far apart for the hardware prefetcher.
CARNOT_INLINE void fetch_rows(const BFloat16* a, std::int64_t a_row) {
  for (int i = 0; i < 2 * kTileRows; ++i) __builtin_prefetch(a + i * a_row);
}

/// What a tile's loop prefetches.
enum class Ahead { Nothing, Rows, Panel };

template <bool Lower, Ahead Fetched>
CARNOT_INLINE void add_tiles(const BFloat16Block& block, const BFloat16* a, const BFloat16* b, float* sums,
                             FinishedTile& finished) {
  constexpr int kSumBytes = kBFloat16Panel * 4, kPanelBytes = kBFloat16Panel * 4, kRowsInAStep = 2;
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
    if (Fetched == Ahead::Panel) fetch_ahead(b, kBFloat16Depth * kBFloat16Panel * sizeof(BFloat16));
    if (Fetched == Ahead::Rows) fetch_rows(a + k + kBFloat16Depth, block.a_row);
    _tile_loadd(4, a + k, a_bytes);
    _tile_loadd(6, b, kPanelBytes);
    _tile_loadd(7, b + 32, kPanelBytes);
    if (Lower) _tile_loadd(5, a + kTileRows * block.a_row + k, a_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (Lower) _tile_dpbf16ps(2, 5, 6);
    if (Lower) _tile_dpbf16ps(3, 5, 7);
    write_rows(block, finished, kRowsInAStep);
    b += kBFloat16Depth * kBFloat16Panel;
  }
  _tile_stored(0, sums, kSumBytes);
  _tile_stored(1, sums + 16, kSumBytes);
  if (Lower) _tile_stored(2, lower_sums, kSumBytes);
  if (Lower) _tile_stored(3, lower_sums + 16, kSumBytes);
}

/// All panels times rows [first, end), `step` at a time. The rows stay in the cache from the first panel on; a panel
/// that few rows use is read from memory each time.
template <bool Lower>
void multiply_rows(const BFloat16Block& block, std::int64_t first, std::int64_t end, int step) {
  shape_tiles(step);
  const Ahead fetched_first = block.b_is_near          ? Ahead::Nothing
                              : block.rows <= kFewRows ? Ahead::Panel
                              : step == 2 * kTileRows  ? Ahead::Rows
                                                       : Ahead::Nothing;
  FinishedTile finished;
  int place = 0;
  for (std::int64_t row = first; row < end; row += step) {
    const BFloat16* a = block.a + row * block.a_row;
    for (std::int64_t panel = 0; panel < panels_of(block); ++panel, place = 1 - place) {
      const BFloat16* b = block.b + panel * block.b_panel;
      float* sums = sums_of(block, panel, row, place);
      if (fetched_first == Ahead::Panel) {
        add_tiles<Lower, Ahead::Panel>(block, a, b, sums, finished);
      } else if (fetched_first == Ahead::Rows && panel == 0) {
        add_tiles<Lower, Ahead::Rows>(block, a, b, sums, finished);
      } else {
        add_tiles<Lower, Ahead::Nothing>(block, a, b, sums, finished);
      }
      if (!block.last) continue;
      write_rows(block, finished, step);
      finished = {.sums = sums, .panel = panel, .row = row, .rows = step};
    }
  }
  write_rows(block, finished, step);
}

void multiply_rows(const BFloat16Block& block, std::int64_t first, std::int64_t end, int step) {
  if (first == end) return;
  step > kTileRows ? multiply_rows<true>(block, first, end, step) : multiply_rows<false>(block, first, end, step);
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
