// kernel/gemm/bfloat16_kernels.h -- the inner loops of bfloat16 products and of attention, one table per kernel set.
//
// A set computes one block of the result. Products of two bfloat16 numbers are exact in float32, sums are rounded to
// float32, and each set adds over depth in its own fixed order, for any number of rows and columns:
//   widening sets (baseline, avx2, avx512)  one depth after the other: the same bits in all three
//   avx512_bf16                             pairs of depths, one pair after the other (vdpbf16ps)
//   amx                                     32 depths at a time: the even ones, the odd ones, both sums added
//   (tdpbf16ps)
// Like the loops of dispatch.h, they neither allocate nor throw.
#pragma once

#include <cstdint>
#include <span>

#include "carnot/core/kernel/bfloat16.h"

namespace carnot::kernel {

/// B is stored in panels of this many columns, each [depth / 2][column][2]: two depths of a column are adjacent, as the
/// processors' instructions require. Depth is padded with zeros to a multiple of kBFloat16Depth.
inline constexpr std::int64_t kBFloat16Panel = 32;
inline constexpr std::int64_t kBFloat16Depth = 32;

/// Sums of the largest tile that a set computes at once: 32 rows by a panel.
inline constexpr std::int64_t kBFloat16SumsOfTile = 32 * kBFloat16Panel;

/// Padding after each row that a set widens, so that rows are not a multiple of a page apart: few such rows fit into
/// the cache.
inline constexpr std::int64_t kWidenedPadding = 16;

/// The destination of results: C(i, j) is at i * row_stride + j, in float32 or rounded to bfloat16. One of the two is
/// null.
struct BFloat16Output {
  float* sums = nullptr;
  BFloat16* rounded = nullptr;
  std::int64_t row_stride = 0;
  bool accumulate = false;         ///< adds to the current values; rounding follows
  const BFloat16* bias = nullptr;  ///< of each column, added before rounding; not for float32 results
};

/// Rows of A times some panels of B over a range of depth. A range that is not the last leaves its sums in `sums`, and
/// the next one continues from them: the division of depth changes no bit.
struct BFloat16Block {
  std::int64_t rows = 0;
  std::int64_t columns = 0;  ///< of all panels; the last panel can have fewer than kBFloat16Panel
  std::int64_t depth = 0;    ///< of this range, a multiple of kBFloat16Depth
  const BFloat16* a = nullptr;
  std::int64_t a_row = 0;  ///< distance between rows of A
  const BFloat16* b = nullptr;
  std::int64_t b_panel = 0;     ///< distance between panels of B
  bool b_is_near = false;       ///< B is in the cache: nothing is prefetched
  float* sums = nullptr;        ///< [panels][rows][kBFloat16Panel], and at least 2 kBFloat16SumsOfTile
  std::int64_t sums_panel = 0;  ///< distance between panels' sums, at least rows * kBFloat16Panel
  float* widened = nullptr;     ///< [rows][depth + kWidenedPadding], used by sets that widen
  bool first = true;
  bool last = true;
  BFloat16Output out{};
};

/// Some queries times the keys in `count` blocks of the cache, or their weights times the values there. Blocks are laid
/// out as in attention.h.
struct BFloat16BlockProduct {
  int rows = 0;
  int dim = 0;  ///< a multiple of kBlockTokens
  int count = 0;
  const BFloat16* const* blocks = nullptr;
  const BFloat16* a = nullptr;  ///< queries [rows, dim], or weights [rows, count * kBlockTokens]
  std::int64_t a_row = 0;
  float* widened = nullptr;  ///< [rows][length of a row + kWidenedPadding], used by sets that widen
  float* out = nullptr;      ///< scores [rows, count * kBlockTokens], or sums [rows, dim]
  std::int64_t out_row = 0;
  bool go_on = false;  ///< sums continue from the current values: the division into blocks changes no bit
};

struct BFloat16Kernels {
  const char* name;
  std::int64_t row_block;    ///< rows of the largest block, a multiple of row_tile
  std::int64_t row_tile;     ///< rows that are multiplied together
  std::int64_t panel_group;  ///< panels of the largest block
  std::int64_t few_rows;     ///< up to this many rows, blocks have more panels, which are read at the speed of memory
  bool widens;               ///< needs BFloat16Block::widened
  void (*multiply)(const BFloat16Block&);

  // Attention:
  /// Products with blocks in place. Null in sets that multiply only panels.
  void (*scores)(const BFloat16BlockProduct&);
  void (*weighted_values)(const BFloat16BlockProduct&);
  /// weights[j] = exp(scale (scores[j] - maximum)), rounded, for j < count, and 0 from there to `padded`; returns the
  /// sum of the rounded weights. Overwrites scores up to `padded`. REQUIRES: padded is a multiple of kBFloat16Depth.
  float (*exponentials)(int count, int padded, float scale, float* scores, BFloat16* weights);
  /// y = x * factor, rounded
  void (*scaled)(std::int64_t n, const float* x, float factor, BFloat16* y);
};

/// A kernel set of this build. `missing` is null if this machine supports it, else a sentence that says why not.
struct BFloat16KernelSet {
  const BFloat16Kernels* kernels;
  const char* missing;
};

/// All sets, the fastest first; every machine supports the last one.
std::span<const BFloat16KernelSet> bfloat16_kernel_sets();

/// The fastest set that this machine supports and kernel/kernel_choice.h allows.
const BFloat16Kernels& bfloat16_kernels();

}  // namespace carnot::kernel
