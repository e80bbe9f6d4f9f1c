// kernel/attention/attention.h -- batch-invariant causal grouped-query attention over tiles of keys: one order of
// additions for prefill, decode and training, so that a token's result is the same in all three.
//
// A row of `qkv` holds the projections of one token: queries [heads * dim], keys [kv_heads * dim], values
// [kv_heads * dim]. Queries and keys are normalised per head where norms are given, then rotated by position.
#pragma once

#include <cstdint>
#include <span>

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
template <class T>
struct AttentionRows {
  std::int64_t begin = 0;
  int rows = 0;
  int past = 0;
  /// Block b of the sequence: keys [kv_heads, dim, kTile], values [kv_heads, kTile, dim]. Positions before `past` are
  /// there already; the rest is written. Empty: the call finds memory of its own (past must be 0).
  std::span<T* const> key_blocks{};
  std::span<T* const> value_blocks{};
};

/// out [T, heads * dim]; rows are contiguous in qkv and out. positions[row] chooses the angles.
template <class T>
void attention_forward(const AttentionLayer<T>& layer, const T* qkv, const std::int64_t* positions,
                       std::span<const AttentionRows<T>> sequences, T* out);

/// Gradients of the above for sequences without past. `dqkv` is written; the norms' gradients (null without norms) are
/// added to.
template <class T>
void attention_backward(const AttentionLayer<T>& layer, const T* qkv, const std::int64_t* positions,
                        std::span<const AttentionRows<T>> sequences, const T* out, const T* dout, T* dqkv,
                        T* dquery_norm, T* dkey_norm);

}  // namespace carnot::kernel
