// kernel/attention/tiles.h -- the inner loops of attention in float32 and float64, over tiles of keys and values.
//
// Included in kernel_table.cpp: everything is in its anonymous namespace, once per instruction set.
#pragma once

#include <cmath>
#include <cstdint>

#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/row_counts.h"
#include "carnot/core/kernel/vectors.h"

namespace carnot::kernel {
namespace {

template <class T, int Queries, int Tiles>
CARNOT_INLINE void scores_of_tiles(int dim, const T* query, std::int64_t query_row, const T* const* key_tiles, T scale,
                                   T* scores, std::int64_t scores_row) {
  constexpr int kParts = kTile / kLanes<T>, kVectors = Tiles * kParts;
  Vector<T> sum[Queries][kVectors];
  for (int q = 0; q < Queries; ++q)
    for (int v = 0; v < kVectors; ++v) sum[q][v] = Vector<T>{};
  const T* keys[Tiles];
  for (int tile = 0; tile < Tiles; ++tile) keys[tile] = key_tiles[tile];
  for (int d = 0; d < dim; ++d) {
    Vector<T> key[kVectors];
    for (int v = 0; v < kVectors; ++v) key[v] = load(keys[v / kParts] + d * kTile + v % kParts * kLanes<T>);
    for (int q = 0; q < Queries; ++q) {
      const Vector<T> x = splat(query[q * query_row + d]);
      for (int v = 0; v < kVectors; ++v) sum[q][v] += x * key[v];
    }
  }
  for (int q = 0; q < Queries; ++q)
    for (int v = 0; v < kVectors; ++v) store(scores + q * scores_row + v * kLanes<T>, sum[q][v] * scale);
}

/// Number of tiles computed together: enough to hide the latency of an addition, if there are enough registers.
template <class T>
constexpr int tiles_side_by_side(int queries) {
  constexpr int kParts = kTile / kLanes<T>, kSums = 8;
  const int tiles = kSums / (queries * kParts);
  return tiles >= 4 ? 4 : tiles >= 2 ? 2 : 1;
}

template <class T, int Queries>
CARNOT_INLINE void scores_of(int tiles, int dim, const T* query, std::int64_t query_row, const T* const* key_tiles,
                             T scale, T* scores, std::int64_t scores_row) {
  constexpr int kTogether = tiles_side_by_side<T>(Queries);
  int tile = 0;
  for (; tile + kTogether <= tiles; tile += kTogether)
    scores_of_tiles<T, Queries, kTogether>(dim, query, query_row, key_tiles + tile, scale, scores + tile * kTile,
                                           scores_row);
  for (; tile < tiles; ++tile)
    scores_of_tiles<T, Queries, 1>(dim, query, query_row, key_tiles + tile, scale, scores + tile * kTile, scores_row);
}

template <class T>
void scores(int queries, int tiles, int dim, const T* query, std::int64_t query_row, const T* const* key_tiles, T scale,
            T* out, std::int64_t out_row) {
  with_row_count<kQueriesOfPass>(queries, [&]<int Queries>() {
    scores_of<T, Queries>(tiles, dim, query, query_row, key_tiles, scale, out, out_row);
  });
}

template <class T>
T softmax(T* scores, int count) {
  constexpr int kL = kLanes<T>;
  const int padded = (count + kTile - 1) / kTile * kTile;
  for (int j = count; j < padded; ++j) scores[j] = -INFINITY;
  Vector<T> best = load(scores);
  for (int j = kL; j < padded; j += kL) {
    const Vector<T> x = load(scores + j);
    best = x > best ? x : best;
  }
  const T maximum = lane_max<T>(best);
  Vector<T> total{};
  for (int j = 0; j < padded; j += kL) {
    const Vector<T> e = exp_of(load(scores + j) - maximum);
    store(scores + j, e);
    total += e;
  }
  const T sum = lane_sum<T>(total);
  const T inverse = 1 / sum;
  for (int j = 0; j < padded; j += kL) store(scores + j, load(scores + j) * inverse);
  return maximum + std::log(sum);
}

template <class T, int Queries, int Parts>
CARNOT_INLINE void values_of(int tiles, int dim, int begin, const T* weights, std::int64_t weights_row,
                             const T* const* value_tiles, T* out, std::int64_t out_row, bool go_on) {
  constexpr int kL = kLanes<T>;
  Vector<T> sum[Queries][Parts];
  for (int q = 0; q < Queries; ++q)
    for (int p = 0; p < Parts; ++p) sum[q][p] = go_on ? load(out + q * out_row + begin + p * kL) : Vector<T>{};
  for (int tile = 0; tile < tiles; ++tile) {
    const T* values = value_tiles[tile] + begin;
    const T* weight = weights + tile * kTile;
    for (int j = 0; j < kTile; ++j) {
      Vector<T> value[Parts];
      for (int p = 0; p < Parts; ++p) value[p] = load(values + j * dim + p * kL);
      for (int q = 0; q < Queries; ++q) {
        const Vector<T> w = splat(weight[q * weights_row + j]);
        for (int p = 0; p < Parts; ++p) sum[q][p] += w * value[p];
      }
    }
  }
  for (int q = 0; q < Queries; ++q)
    for (int p = 0; p < Parts; ++p) store(out + q * out_row + begin + p * kL, sum[q][p]);
}

template <class T, int Queries>
CARNOT_INLINE void weighted_values_of(int tiles, int dim, const T* weights, std::int64_t weights_row,
                                      const T* const* value_tiles, T* out, std::int64_t out_row, bool go_on) {
  constexpr int kL = kLanes<T>, kParts = Queries == 1 ? 4 : 2;
  int d = 0;
  for (; d + kParts * kL <= dim; d += kParts * kL)
    values_of<T, Queries, kParts>(tiles, dim, d, weights, weights_row, value_tiles, out, out_row, go_on);
  for (; d + kL <= dim; d += kL)
    values_of<T, Queries, 1>(tiles, dim, d, weights, weights_row, value_tiles, out, out_row, go_on);
  for (; d < dim; ++d) {
    for (int q = 0; q < Queries; ++q) {
      T sum = go_on ? out[q * out_row + d] : 0;
      for (int tile = 0; tile < tiles; ++tile)
        for (int j = 0; j < kTile; ++j)
          sum += weights[q * weights_row + tile * kTile + j] * value_tiles[tile][j * dim + d];
      out[q * out_row + d] = sum;
    }
  }
}

template <class T>
void weighted_values(int queries, int tiles, int dim, const T* weights, std::int64_t weights_row,
                     const T* const* value_tiles, T* out, std::int64_t out_row, bool go_on) {
  with_row_count<kQueriesOfPass>(queries, [&]<int Queries>() {
    weighted_values_of<T, Queries>(tiles, dim, weights, weights_row, value_tiles, out, out_row, go_on);
  });
}

template <class T, int Queries>
CARNOT_INLINE void add_outer_of(int count, int dim, const T* weights, std::int64_t weights_row, const T* vectors,
                                std::int64_t vectors_row, T* out) {
  constexpr int kL = kLanes<T>;
  int d = 0;
  for (; d + kL <= dim; d += kL) {
    Vector<T> x[Queries];
    for (int q = 0; q < Queries; ++q) x[q] = load(vectors + q * vectors_row + d);
    for (int j = 0; j < count; ++j) {
      Vector<T> sum = load(out + j * dim + d);
      for (int q = 0; q < Queries; ++q) sum += x[q] * weights[q * weights_row + j];
      store(out + j * dim + d, sum);
    }
  }
  for (; d < dim; ++d)
    for (int j = 0; j < count; ++j)
      for (int q = 0; q < Queries; ++q) out[j * dim + d] += vectors[q * vectors_row + d] * weights[q * weights_row + j];
}

template <class T>
void add_outer(int queries, int count, int dim, const T* weights, std::int64_t weights_row, const T* vectors,
               std::int64_t vectors_row, T* out) {
  with_row_count<kQueriesOfPass>(queries, [&]<int Queries>() {
    add_outer_of<T, Queries>(count, dim, weights, weights_row, vectors, vectors_row, out);
  });
}

}  // namespace
}  // namespace carnot::kernel
