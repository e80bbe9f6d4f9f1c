// kernel/recurrent/gated_delta.h -- batch-invariant gated delta rule, the linear attention of Qwen3-Next and Qwen3.5:
// one order of additions for prefill, decoding and training, so that a token's result is the same in all three.
//
// Yang et al., Gated Delta Networks, arXiv:2412.06464. A value head h has a state S [key_dim, value_dim], at first 0,
// and reads the queries and keys of key head h / (value_heads / key_heads). For each row, with q and k divided by
// sqrt(sum of squares + norm_epsilon), and q also by sqrt(key_dim):
//   decay = exp(-exp(log_rate[h]) softplus(a + step_bias[h])),  beta = sigmoid(b)
//   delta = beta (v - decay S^T k),  S <- decay S + k delta^T,  out = S^T q
//
// Rows are stored as S (float, double, BFloat16), computed in Computed<S>, and results are rounded once. States are
// never rounded. A row is a step of the state whatever the call: pieces of a sequence have the bits of the whole.
// Columns of a state do not depend on each other. A panel of kDeltaColumns of them stays in the processor's cache for
// a segment of up to 64 rows (recurrent_segments.h), and a decoding step reads and writes a state's memory once.
//
// The gated norm that follows, norm(out) weight silu(z) for each head, is rms_norm and then swiglu with the gate z
// (StorageTable). The causal convolution before it is not part of it either.
#pragma once

#include <cstdint>
#include <span>

#include "carnot/core/kernel/bfloat16.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/recurrent/recurrent_segments.h"

namespace carnot::kernel {

template <class T>
struct GatedDeltaLayer {
  int key_heads = 1;
  int value_heads = 1;  ///< a multiple of key_heads
  int key_dim = 1;
  int value_dim = 1;
  const T* log_rate = nullptr;   ///< [value_heads], `A_log`
  const T* step_bias = nullptr;  ///< [value_heads], `dt_bias`
  T norm_epsilon = T(1e-6);

  /// Numbers of a row: queries [key_heads, key_dim], keys [key_heads, key_dim], values [value_heads, value_dim].
  int width() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
  int panels() const { return (value_dim + kDeltaColumns<T> - 1) / kDeltaColumns<T>; }
  /// Numbers of a head's state: [panels, key_dim, kDeltaColumns]; columns from value_dim on are 0.
  std::int64_t head_state() const { return std::int64_t{panels()} * key_dim * kDeltaColumns<T>; }
  /// Numbers of a sequence's state: [value_heads] times a head's.
  std::int64_t state_size() const { return value_heads * head_state(); }
};

/// What a layer reads, by row. Each array is contiguous.
template <class S>
struct GatedDeltaInput {
  const S* qkv = nullptr;  ///< [T, width], after convolution and activation
  const S* a = nullptr;    ///< [T, value_heads]
  const S* b = nullptr;    ///< [T, value_heads]
};

/// Gradients of the input, which are overwritten in the rows of the sequences, and of parameters, which are added to.
template <class S>
struct GatedDeltaGradient {
  S* qkv = nullptr;
  S* a = nullptr;
  S* b = nullptr;
  Computed<S>* log_rate = nullptr;
  Computed<S>* step_bias = nullptr;
};

/// out [T, value_heads * value_dim]. `states`: for each sequence its state, which is read and advanced, or null; empty:
/// none has one. A sequence without a state of the caller's starts from 0 or from its parent's, and its last state is
/// not kept. Sequences with a parent, and parents, have none.
template <class S>
void gated_delta_forward(const GatedDeltaLayer<Computed<S>>& layer, const GatedDeltaInput<S>& in,
                         std::span<const RecurrentRows> sequences, std::span<Computed<S>* const> states, S* out);

/// Gradients of the above without states. Computes states again, from every kSegmentRows-th row at least. Parallel over
/// trees and key heads; a thread keeps, for its largest tree, two keys of each row and a head's state of each segment.
template <class S>
void gated_delta_backward(const GatedDeltaLayer<Computed<S>>& layer, const GatedDeltaInput<S>& in,
                          std::span<const RecurrentRows> sequences, const S* dout,
                          const GatedDeltaGradient<S>& gradient);

}  // namespace carnot::kernel
