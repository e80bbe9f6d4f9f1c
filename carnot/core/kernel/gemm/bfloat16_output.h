// kernel/gemm/bfloat16_output.h -- writes finished sums of a tile to the result.
//
// Included in bfloat16_table.cpp: everything is in its anonymous namespace, once per kernel set.
#pragma once

#include <cstdint>

#include "carnot/core/kernel/gemm/bfloat16_kernels.h"
#include "carnot/core/kernel/vectors.h"
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace carnot::kernel {
namespace {

/// A whole row of a panel, rounded. With vcvtne2ps2bf16, sums below 2^-126 become zero, as they do in those sets'
/// products.
CARNOT_INLINE void round_panel_row(const float* sums, BFloat16* out) {
#ifdef __AVX512BF16__
  const __m512bh row = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(sums + 16), _mm512_loadu_ps(sums));
  __builtin_memcpy(out, &row, sizeof(row));
#else
  for (int j = 0; j < kBFloat16Panel; j += kLanes<float>) store(out + j, load(sums + j));
#endif
}

CARNOT_INLINE void write_panel_row(const float* sums, float* out, bool accumulate) {
  constexpr int kL = kLanes<float>;
  for (int j = 0; j < kBFloat16Panel; j += kL)
    store(out + j, accumulate ? load(out + j) + load(sums + j) : load(sums + j));
}

/// Adds to the sums what has to be added before rounding: the current values and the bias. Returns `all`.
CARNOT_INLINE const float* add_before_rounding(const BFloat16Output& out, std::int64_t first, std::int64_t begin,
                                               std::int64_t columns, const float* sums, float* all) {
  for (std::int64_t j = 0; j < columns; ++j) {
    float x = sums[j];
    if (out.accumulate) x += widened(out.rounded[begin + j]);
    if (out.bias != nullptr) x += widened(out.bias[first + j]);
    all[j] = x;
  }
  return all;
}

/// Writes row `row` of a panel from its kBFloat16Panel sums.
CARNOT_INLINE void write_row(const BFloat16Block& block, std::int64_t panel, std::int64_t row, const float* sums) {
  const BFloat16Output& out = block.out;
  const std::int64_t first = panel * kBFloat16Panel;
  const std::int64_t begin = row * out.row_stride + first;
  const std::int64_t columns = block.columns - first;
  float all[kBFloat16Panel];
  if (out.rounded != nullptr && (out.accumulate || out.bias != nullptr))
    sums = add_before_rounding(out, first, begin, columns < kBFloat16Panel ? columns : kBFloat16Panel, sums, all);
  if (columns >= kBFloat16Panel) {
    if (out.rounded != nullptr) {
      round_panel_row(sums, out.rounded + begin);
    } else {
      write_panel_row(sums, out.sums + begin, out.accumulate);
    }
    return;
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    if (out.rounded != nullptr) {
      out.rounded[begin + j] = rounded(sums[j]);
    } else {
      out.sums[begin + j] = out.accumulate ? out.sums[begin + j] + sums[j] : sums[j];
    }
  }
}

/// The memory for the sums of a tile. Sums that are written at once alternate between two places, which stay in the
/// first-level cache.
CARNOT_INLINE float* sums_of(const BFloat16Block& block, std::int64_t panel, std::int64_t row, int place) {
  if (block.first && block.last) return block.sums + place * kBFloat16SumsOfTile;
  return block.sums + panel * block.sums_panel + row * kBFloat16Panel;
}

CARNOT_INLINE std::int64_t panels_of(const BFloat16Block& block) {
  return (block.columns + kBFloat16Panel - 1) / kBFloat16Panel;
}

/// Prefetch distance in panels that few rows use, where memory is the limit. The hardware prefetcher stops at each
/// page.
constexpr std::int64_t kFetchAhead = 4096;

CARNOT_INLINE void fetch_ahead(const BFloat16* p, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(reinterpret_cast<const char*>(p) + kFetchAhead + i);
}

}  // namespace
}  // namespace carnot::kernel
