// kernel/dispatch.h -- the inner loops, compiled once per instruction set; callers see one table of functions.
//
// Every loop is batch-invariant: its order of additions depends on the shapes only, so a row's result depends neither
// on the other rows nor on threads. Bits can differ between instruction sets, so equality holds per machine.
// Nothing here allocates, throws, or uses templates of the standard library (their code would be compiled for the
// wrong instruction set and could be the copy that the linker keeps).
#pragma once

#include <cstdint>

#include "carnot/core/base/kv_block.h"
#include "carnot/core/kernel/bfloat16.h"

namespace carnot::kernel {

/// Positions per tile of keys; a tile is a block of the cache.
inline constexpr int kTile = kBlockTokens;
/// Maximum number of queries that share a pass over keys or values in float32 and float64.
inline constexpr int kQueriesOfPass = 4;

/// The entries of a row that are kept when its lowest are removed (kernel/statistics/selection.h): x is removed if x <
/// threshold, or if x == threshold and its index is at least tie_limit.
template <class T>
struct Cut {
  T threshold;
  std::int64_t tie_limit;
};

/// Inputs for the gradient of a row's statistics: the statistics, and the gradients with respect to them.
template <class T>
struct RowGradient {
  T logsumexp, entropy;
  T g_logprob, g_entropy, g_logsumexp;
};
/// The same for the entries that a cut keeps.
template <class T>
struct KeptGradient {
  Cut<T> cut;
  T logsumexp, entropy;
  T g_entropy;
};

/// For a segment of a row of logits z / temperature, with d = z / temperature - maximum: the sums of e^d and of e^d d.
template <class T>
struct SegmentStatistics {
  T maximum, sum, product;
};

/// Columns of a panel of a state of the gated delta rule (kernel/recurrent/gated_delta.h): two cache lines.
template <class T>
inline constexpr int kDeltaColumns = 128 / static_cast<int>(sizeof(T));
/// Rows of queries and keys, and of their gradients, are as long as the next multiple of this, with zeros at the end.
inline constexpr int kDeltaPadding = 16;

/// One row's step in one panel of a state.
template <class T>
struct DeltaStep {
  int dim;  ///< rows of the state
  T decay, beta;
  const T* query;  ///< [dim, padded]
  const T* key;
  const T* before;  ///< the state, [dim, kDeltaColumns]
};
/// Gradients of a step that all panels add to.
template <class T>
struct DeltaStepSums {
  T* query;  ///< [dim, padded]
  T* key;
  T* decay;
  T* beta;
};

template <class T>
struct KernelTable {
  const char* name;
  int row_tile;  ///< rows of one gemm tile
  int panel;     ///< columns of one packed panel

  /// C[rows, columns] (+)= A[rows, depth] B[depth, panel]; A(i, k) = a[i * a_row + k * a_depth]; `b` is packed
  /// [depth][panel]. REQUIRES: rows <= row_tile, columns <= panel.
  void (*gemm_tile)(int rows, int columns, std::int64_t depth, const T* a, std::int64_t a_row, std::int64_t a_depth,
                    const T* b, T* c, std::int64_t c_row, bool accumulate);

  /// scores[q * scores_row + j] = scale * dot(query q, key j) for `tiles` tiles of keys stored [dim][kTile]. Queries
  /// are `query_row` apart. REQUIRES: queries <= kQueriesOfPass.
  void (*scores)(int queries, int tiles, int dim, const T* query, std::int64_t query_row, const T* const* key_tiles,
                 T scale, T* scores, std::int64_t scores_row);
  /// out_q = sum over keys of weight[q][j] value_j; values stored [kTile][dim] per tile. With `go_on`, the sum
  /// continues from the current values: the division into calls changes no bit. REQUIRES: queries <= kQueriesOfPass.
  void (*weighted_values)(int queries, int tiles, int dim, const T* weights, std::int64_t weights_row,
                          const T* const* value_tiles, T* out, std::int64_t out_row, bool go_on);

  /// In place: the softmax of scores[0, count), then zeros up to the end of the last tile. Returns its logsumexp.
  T (*softmax)(T* scores, int count);

  /// out_j += sum over queries of weight[q][j] vector_q, for j < count. REQUIRES: queries <= kQueriesOfPass.
  void (*add_outer)(int queries, int count, int dim, const T* weights, std::int64_t weights_row, const T* vectors,
                    std::int64_t vectors_row, T* out);
  /// sum of x y
  T (*dot)(std::int64_t n, const T* x, const T* y);

  /// residual = value - decay before^T key, after = decay before + key (beta residual)^T, out = after^T query; all but
  /// the states are [kDeltaColumns]. `after` can be `before`.
  void (*delta_step)(const DeltaStep<T>& step, const T* value, T* after, T* residual, T* out);
  /// `dstate`: the gradient of `after`, replaced by that of `before`. `dvalue` is written.
  void (*delta_step_backward)(const DeltaStep<T>& step, const T* residual, const T* dout, T* dstate, T* dvalue,
                              const DeltaStepSums<T>& sums);

  /// Rotates the pairs (x[i], x[i + half]) by the angles; `sign` -1 rotates back (the gradient).
  void (*rotate)(int half, const T* cosine, const T* sine, T sign, const T* x, T* y);

  /// For one row of logits z / temperature: maximum, logsumexp and entropy; z is left scaled by 1 / temperature.
  void (*row_statistics)(std::int64_t n, T inverse_temperature, T* logits, T* logsumexp, T* entropy);
  /// Segment statistics, which kernel/statistics/segments.h combines to those of a row; the segment is left scaled as
  /// well.
  void (*segment_statistics)(std::int64_t n, T inverse_temperature, T* logits, SegmentStatistics<T>* out);
  /// row_statistics for a row to sample from. Also, for its first `drawable` entries, exponentials[i] = exp(z_i - their
  /// maximum) and `factor` = 1 / their sum: exponentials[i] * factor has the bits of softmax. REQUIRES: 0 < drawable <=
  /// n.
  void (*row_draw)(std::int64_t n, std::int64_t drawable, T inverse_temperature, T* logits, T* logsumexp, T* entropy,
                   T* exponentials, T* factor);
  /// Sums of x[i] * factor over strips of `strip` entries, the last one possibly shorter: four sums in double, each of
  /// every fourth entry, added pairwise. float32 products are rounded first, so the bits are the same in every set.
  void (*strip_sums)(std::int64_t n, std::int64_t strip, T factor, const T* x, double* sums);
  /// counts[j] = number of x below pivots[j], for three pivots.
  void (*count_below)(std::int64_t n, const T* x, const T* pivots, std::int64_t* counts);
  /// logsumexp and entropy of the entries of a scaled row that a cut keeps.
  void (*kept_statistics)(std::int64_t n, const T* z, Cut<T> cut, T* logsumexp, T* entropy);
  /// Writes dz over the unscaled logits, without the target's own term, all times 1 / temperature:
  ///   -g_logprob p - g_entropy p (log p + H) + g_logsumexp p
  /// and, for entries that `kept` keeps, with q their softmax: -g_entropy q (log q + H). `kept` can be null.
  void (*row_statistics_backward)(std::int64_t n, T inverse_temperature, T* logits, const RowGradient<T>& row,
                                  const KeptGradient<T>* kept);
};

/// Loops over rows that are stored as S (float, double, BFloat16) and computed in T: inputs are widened, and results
/// stored as S are rounded once. Sums and factors are of type T.
template <class S>
struct StorageTable {
  using T = Computed<S>;

  /// y = x
  void (*widen)(std::int64_t n, const S* x, T* y);
  void (*round)(std::int64_t n, const T* x, S* y);
  /// y += x
  void (*add)(std::int64_t n, const S* x, T* y);

  /// y = x * rsqrt(mean(x^2) + epsilon) * (weight + offset); returns the factor.
  T (*rms_norm)(std::int64_t n, const S* x, const S* weight, T offset, T epsilon, S* y);
  /// dx (written) and dweight (added to) of the above.
  void (*rms_norm_backward)(std::int64_t n, const S* dy, const S* x, const S* weight, T offset, T factor, S* dx,
                            T* dweight);

  /// out = silu(gate) * up
  void (*swiglu)(std::int64_t n, const S* gate, const S* up, S* out);
  void (*swiglu_backward)(std::int64_t n, const S* dout, const S* gate, const S* up, S* dgate, S* dup);
  /// The same with gelu in its approximation by tanh.
  void (*geglu)(std::int64_t n, const S* gate, const S* up, S* out);
  void (*geglu_backward)(std::int64_t n, const S* dout, const S* gate, const S* up, S* dgate, S* dup);

  /// out = sigmoid(gate) * up
  void (*sigmoid_product)(std::int64_t n, const S* gate, const S* up, S* out);
  void (*sigmoid_product_backward)(std::int64_t n, const S* dout, const S* gate, const S* up, S* dgate, S* dup);

  /// out = x y
  void (*multiply)(std::int64_t n, const S* x, const S* y, S* out);
  void (*multiply_backward)(std::int64_t n, const T* dout, const S* x, const S* y, S* dx, S* dy);

  /// out = gate * sum over taps of rows[tap] * weights[tap * stride ...], in their order; a null row is one of zeros.
  void (*convolve)(std::int64_t n, int taps, const S* const* rows, const T* weights, std::int64_t stride, const S* gate,
                   S* out);
  /// dgate (written), drows and dweights (added to) of the above; drows[tap] is not used where rows[tap] is null.
  void (*convolve_backward)(std::int64_t n, int taps, const S* const* rows, const T* weights, std::int64_t stride,
                            const S* gate, const S* dout, T* const* drows, T* dweights, S* dgate);
};

/// The widest tables that this processor supports and kernel/kernel_choice.h allows.
template <class T>
const KernelTable<T>& kernel_table();
template <class S>
const StorageTable<S>& storage_table();

}  // namespace carnot::kernel
