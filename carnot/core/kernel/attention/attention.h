// kernel/attention/attention.h -- batch-invariant causal grouped-query attention over tiles of keys: one order of
// additions for prefill, decode and training, so that a token's result is the same in all three.
//
// A row of `qkv` holds the projections of one token: queries [heads * dim], keys [kv_heads * dim], values
// [kv_heads * dim]. Queries and keys are normalised per head if norms are given, then rotated by position; queries are
// then multiplied by a number of their position, if such numbers are given.
//
// With a window, blocks outside it are neither read nor computed with. Sums begin at the first block in which the query
// sees a position, and positions of it that the query does not see have weight 0.
//
// Rows, keys and values are stored as S (float, double, BFloat16) and computed in Computed<S>. Queries and keys are
// rounded to S once, after rotation, and results once they are complete. In bfloat16, both products use a kernel set
// (bfloat16_attention.cpp), for which weights are rounded, too; scores and sums never are.
//
// If sequences of few rows share memory for their first blocks, as forks of a prompt do while decoding, a block is
// read once for the queries of several of them (forward_tasks.h). This changes the order of no sum.
#pragma once

#include <cstdint>
#include <span>

#include "carnot/core/kernel/bfloat16.h"
#include "carnot/core/kernel/gemm/bfloat16_kernels.h"

namespace carnot::kernel {

template <class T>
struct AttentionLayer {
  int heads = 1;
  int kv_heads = 1;
  int dim = 1;
  T scale = 1;
  const T* query_norm = nullptr;  ///< [dim], or null
  const T* key_norm = nullptr;
  T norm_epsilon = 0;
  const T* cosine = nullptr;  ///< [position][(dim - unrotated) / 2]
  const T* sine = nullptr;
  const T* query_scale = nullptr;  ///< [position], multiplies rotated queries; null: nothing does
  int unrotated = 0;               ///< last numbers of a head that are not rotated
  int window = 0;                  ///< positions that a row sees, its own the last of them; 0: all up to its own

  int width() const { return (heads + 2 * kv_heads) * dim; }
  /// The first position that the row at position `visible` - 1 sees.
  int first_visible(int visible) const { return window > 0 && visible > window ? visible - window : 0; }
};

/// One sequence's new rows [begin, begin + rows), at positions past, past + 1, ...
template <class S>
struct AttentionRows {
  std::int64_t begin = 0;
  int rows = 0;
  int past = 0;
  /// Block b of the sequence: keys [kv_heads, dim, kTile], values [kv_heads, kTile, dim]; in bfloat16, in the layout of
  /// its products, [kv_heads, dim / 2, kTile, 2] and [kv_heads, kTile / 2, dim, 2]. Positions before `past` must
  /// already be filled; the others are written. Empty: the call allocates its own memory.
  std::span<S* const> key_blocks{};
  std::span<S* const> value_blocks{};
  /// Index of an earlier sequence of the same call, without blocks, whose first `past` positions precede these rows: a
  /// prefix that several share is computed once. -1: `past` positions are in the blocks.
  int parent = -1;
};

/// out [T, heads * dim]; rows are contiguous in qkv and out. positions[row] selects the angles. `products`: the kernel
/// set for bfloat16.
template <class S>
void attention_forward(const AttentionLayer<Computed<S>>& layer, const S* qkv, const std::int64_t* positions,
                       std::span<const AttentionRows<S>> sequences, S* out,
                       const BFloat16Kernels& products = bfloat16_kernels());

/// Gradients of the above, for sequences without blocks. `dqkv` is overwritten; the norms' gradients (null without
/// norms) are added to.
template <class S>
void attention_backward(const AttentionLayer<Computed<S>>& layer, const S* qkv, const std::int64_t* positions,
                        std::span<const AttentionRows<S>> sequences, const S* out, const S* dout, S* dqkv,
                        Computed<S>* dquery_norm, Computed<S>* dkey_norm);

}  // namespace carnot::kernel
