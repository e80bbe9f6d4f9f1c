// kernel/attention/attention_rows.h -- what the forward and the backward pass of attention do with a row: widen it,
// rotate it, store it. Internal to the room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "carnot/core/kernel/attention/attention.h"
#include "carnot/core/kernel/attention/attention_task.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/elementwise/wide_rows.h"

namespace carnot::kernel {

/// Rotates the head's leading numbers; `sign` -1 rotates back.
template <class T>
void rotate_head(const AttentionLayer<T>& layer, std::int64_t position, T sign, const T* x, T* y) {
  const int rotated = layer.dim - layer.unrotated, half = rotated / 2;
  if (half > 0)
    kernel_table<T>().rotate(half, layer.cosine + position * half, layer.sine + position * half, sign, x, y);
  std::copy_n(x + rotated, layer.unrotated, y + rotated);
}

/// One head's query or key of one row: normalised if requested, and rotated.
template <class S>
void position_head(const AttentionLayer<Computed<S>>& layer, const Computed<S>* norm, std::int64_t position, const S* x,
                   Computed<S>* scratch, Computed<S>* y) {
  using T = Computed<S>;
  const T* wide = wide_row<S>(layer.dim, x, scratch);
  if (norm != nullptr) {
    storage_table<T>().rms_norm(layer.dim, wide, norm, T(0), layer.norm_epsilon, scratch);
    wide = scratch;
  }
  rotate_head(layer, position, T(1), wide, y);
}

template <class T>
void scale_query(const AttentionLayer<T>& layer, std::int64_t position, T* query) {
  if (layer.query_scale == nullptr) return;
  for (int d = 0; d < layer.dim; ++d) query[d] *= layer.query_scale[position];
}

/// One head's query of one row, as scores use it.
template <class S>
void position_query(const AttentionLayer<Computed<S>>& layer, std::int64_t position, const S* x, Computed<S>* scratch,
                    Computed<S>* y) {
  position_head<S>(layer, layer.query_norm, position, x, scratch, y);
  scale_query(layer, position, y);
}

/// What a task's memory is for.
enum class Scratch : std::size_t {
  Normed,
  Turned,
  Query,
  KeyColumns,
  KeyRows,
  ValueColumns,
  Probability,
  ScoreGradient,
  KeyGradient,
  ValueGradient,
  TreeKeyGradient,
  TreeValueGradient,
  kCount
};

/// Memory of one task, which its thread keeps between calls.
template <class T>
T* scratch(Scratch purpose, std::size_t size) {
  thread_local std::vector<T> all[static_cast<std::size_t>(Scratch::kCount)];
  std::vector<T>& memory = all[static_cast<std::size_t>(purpose)];
  if (memory.size() < size) memory.resize(size);
  return memory.data();
}

}  // namespace carnot::kernel
