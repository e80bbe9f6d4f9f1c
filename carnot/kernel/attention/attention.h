// kernel/attention/attention.h -- batch-invariant causal grouped-query attention over tiles of keys: one order of
// additions for prefill, decode and training, so that a token's result is the same in all three.
//
// A row of `qkv` holds the projections of one token: queries [heads * dim], keys [kv_heads * dim], values
// [kv_heads * dim]. Queries and keys are normalised per head where norms are given, then rotated by position.
//
// Rows, keys and values are stored as S (float, double, BFloat16) and computed in Computed<S>. Queries and keys are
// rounded to S once, when they have been rotated, and results when they are complete. In bfloat16 both products are
// those of a kernel set (bfloat16_attention.cpp), for which weights are rounded, too; scores and sums never.
//
// Where sequences of few rows have the same memory as their first blocks, as forks of a prompt do while they decode, a
// block is read once for the queries of several of them (forward_tasks.h). No sum's order changes.
#pragma once

#include <cstdint>
#include <span>

#include "carnot/kernel/bfloat16.h"
#include "carnot/kernel/gemm/bfloat16_kernels.h"

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
  const T* cosine = nullptr;  ///< [position][dim / 2]
  const T* sine = nullptr;

  int width() const { return (heads + 2 * kv_heads) * dim; }
};

/// One sequence's new rows [begin, begin + rows), at positions past, past + 1, ...
template <class S>
struct AttentionRows {
  std::int64_t begin = 0;
  int rows = 0;
  int past = 0;
  /// Block b of the sequence: keys [kv_heads, dim, kTile], values [kv_heads, kTile, dim]; in bfloat16, as its products
  /// take them, [kv_heads, dim / 2, kTile, 2] and [kv_heads, kTile / 2, dim, 2]. Positions before `past` are there
  /// already; the rest is written. Empty: the call finds memory of its own.
  std::span<S* const> key_blocks{};
  std::span<S* const> value_blocks{};
  /// Number of the sequence of the same call, an earlier one without blocks, whose first `past` positions come before
  /// these rows: a prefix that several share is computed once. -1: `past` positions are in the blocks.
  int parent = -1;
};

/// out [T, heads * dim]; rows are contiguous in qkv and out. positions[row] chooses the angles. `products`: the kernel
/// set for bfloat16.
template <class S>
void attention_forward(const AttentionLayer<Computed<S>>& layer, const S* qkv, const std::int64_t* positions,
                       std::span<const AttentionRows<S>> sequences, S* out,
                       const BFloat16Kernels& products = bfloat16_kernels());

/// Gradients of the above for sequences without blocks. `dqkv` is written; the norms' gradients (null without norms)
/// are added to.
template <class S>
void attention_backward(const AttentionLayer<Computed<S>>& layer, const S* qkv, const std::int64_t* positions,
                        std::span<const AttentionRows<S>> sequences, const S* out, const S* dout, S* dqkv,
                        Computed<S>* dquery_norm, Computed<S>* dkey_norm);

}  // namespace carnot::kernel
