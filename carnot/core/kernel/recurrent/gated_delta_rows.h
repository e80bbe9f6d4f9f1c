// kernel/recurrent/gated_delta_rows.h -- what the steps of the gated delta rule read of a segment's rows: unit queries
// and keys, values, gates. Internal to the room.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/elementwise/wide_rows.h"
#include "carnot/core/kernel/recurrent/gated_delta.h"

namespace carnot::kernel {

/// Rows of numbers, in memory that is kept for the next use.
template <class T>
class NumberRows {
 public:
  /// Anything.
  void resize(std::int64_t rows, std::int64_t width) {
    width_ = width;
    const auto count = static_cast<std::size_t>(rows * width);
    if (numbers_.size() < count) numbers_.resize(count);
  }
  void resize_to_zeros(std::int64_t rows, std::int64_t width) {
    resize(rows, width);
    std::fill_n(numbers_.data(), rows * width, T(0));
  }
  T* at(std::int64_t row) { return numbers_.data() + row * width_; }
  const T* at(std::int64_t row) const { return numbers_.data() + row * width_; }

 private:
  std::vector<T> numbers_{};
  std::int64_t width_ = 0;
};

template <class T>
struct DeltaGates {
  T decay, beta;
  T log_decay;
  T slope;  ///< of log_decay, by the input a
};

template <class T>
DeltaGates<T> delta_gates(const GatedDeltaLayer<T>& layer, int head, T a, T b) {
  const auto sigmoid = [](T x) { return 1 / (1 + std::exp(-x)); };
  const T rate = -std::exp(layer.log_rate[head]), x = a + layer.step_bias[head];
  const T softplus = std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
  const T log_decay = rate * softplus;
  return {.decay = std::exp(log_decay), .beta = sigmoid(b), .log_decay = log_decay, .slope = rate * sigmoid(x)};
}

/// Numbers of a query or key, padded.
template <class T>
std::int64_t padded_key(const GatedDeltaLayer<T>& layer) {
  return (layer.key_dim + kDeltaPadding - 1) / kDeltaPadding * kDeltaPadding;
}

/// Divides queries and keys by sqrt(sum of squares + norm_epsilon), and queries by sqrt(key_dim), as RMSNorm with
/// another epsilon and a constant weight.
template <class T>
struct UnitNorm {
  explicit UnitNorm(const GatedDeltaLayer<T>& layer)
      : dim(layer.key_dim),
        epsilon(layer.norm_epsilon / static_cast<T>(dim)),
        query(1 / static_cast<T>(dim)),
        key(1 / std::sqrt(static_cast<T>(dim))) {}

  /// y of x with the weight `query` or `key`; returns the factor. `zeros`: [dim]
  T forward(T weight, const T* zeros, const T* x, T* y) const {
    return storage_table<T>().rms_norm(dim, x, zeros, weight, epsilon, y);
  }
  /// dx (written) of the above. `unused`: [dim], anything that does not overflow
  void backward(T weight, const T* zeros, T factor, const T* dy, const T* x, T* dx, T* unused) const {
    storage_table<T>().rms_norm_backward(dim, dy, x, zeros, weight, factor, dx, unused);
  }

  int dim;
  T epsilon, query, key;
};

/// The rows of one segment for one value head.
template <class S>
class GatedDeltaRows {
  using T = Computed<S>;

 public:
  void load(const GatedDeltaLayer<T>& layer, const GatedDeltaInput<S>& in, const RecurrentSegment& segment, int head) {
    const int group = layer.value_heads / layer.key_heads, columns = layer.panels() * kDeltaColumns<T>;
    const UnitNorm<T> norm(layer);
    dim_ = layer.key_dim;
    queries_.resize_to_zeros(segment.rows, padded_key(layer));
    keys_.resize_to_zeros(segment.rows, padded_key(layer));
    values_.resize_to_zeros(segment.rows, columns);
    scratch_.resize_to_zeros(2, dim_);
    gates_.clear();
    for (int r = 0; r < segment.rows; ++r) {
      const std::int64_t row = segment.begin + r, gate = row * layer.value_heads + head;
      const S* query = in.qkv + row * layer.width() + head / group * dim_;
      const S* key = query + layer.key_heads * dim_;
      const S* value = in.qkv + row * layer.width() + 2 * layer.key_heads * dim_ + head * layer.value_dim;
      norm.forward(norm.query, scratch_.at(0), wide_row<S>(dim_, query, scratch_.at(1)), queries_.at(r));
      norm.forward(norm.key, scratch_.at(0), wide_row<S>(dim_, key, scratch_.at(1)), keys_.at(r));
      copy_wide<S>(layer.value_dim, value, values_.at(r));
      gates_.push_back(delta_gates(layer, head, widened(in.a[gate]), widened(in.b[gate])));
    }
  }

  DeltaStep<T> step(int row, const T* before) const {
    return {.dim = dim_,
            .decay = gates(row).decay,
            .beta = gates(row).beta,
            .query = queries_.at(row),
            .key = keys_.at(row),
            .before = before};
  }
  /// [panels, kDeltaColumns]
  const T* value(int row) const { return values_.at(row); }
  const DeltaGates<T>& gates(int row) const { return gates_[static_cast<std::size_t>(row)]; }

 private:
  int dim_ = 0;
  NumberRows<T> queries_{}, keys_{}, values_{}, scratch_{};
  std::vector<DeltaGates<T>> gates_{};
};

}  // namespace carnot::kernel
