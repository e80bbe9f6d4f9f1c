// Compiled once per instruction set with CARNOT_ISA (a name), CARNOT_VECTOR_BYTES and CARNOT_ROW_TILE set.
#include <cmath>

#include "carnot/kernel/isa.h"
#include "carnot/kernel/statistics/rows.h"
#include "carnot/kernel/vectors.h"

namespace carnot::kernel {
namespace {

template <class T, int Rows>
CARNOT_INLINE void gemm_rows(int columns, std::int64_t depth, const T* a, std::int64_t a_row, std::int64_t a_depth,
                             const T* b, T* c, std::int64_t c_row, bool accumulate) {
  constexpr int kL = kLanes<T>;
  Vector<T> sum[Rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) sum[i][0] = sum[i][1] = Vector<T>{};
  for (std::int64_t k = 0; k < depth; ++k) {
    const Vector<T> b0 = load(b + k * 2 * kL);
    const Vector<T> b1 = load(b + k * 2 * kL + kL);
    const T* a_k = a + k * a_depth;
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Vector<T> x = splat(a_k[i * a_row]);
      sum[i][0] += x * b0;
      sum[i][1] += x * b1;
    }
  }
  if (columns == 2 * kL) {
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      T* out = c + i * c_row;
      if (accumulate) {
        sum[i][0] += load(out);
        sum[i][1] += load(out + kL);
      }
      store(out, sum[i][0]);
      store(out + kL, sum[i][1]);
    }
    return;
  }
  T row[2 * kL];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    store(row, sum[i][0]);
    store(row + kL, sum[i][1]);
    T* out = c + i * c_row;
    for (int j = 0; j < columns; ++j) out[j] = accumulate ? out[j] + row[j] : row[j];
  }
}

template <class T>
void gemm_tile(int rows, int columns, std::int64_t depth, const T* a, std::int64_t a_row, std::int64_t a_depth,
               const T* b, T* c, std::int64_t c_row, bool accumulate) {
  // One instance per number of rows; every instance adds in the same order.
  switch (rows) {
#define CARNOT_CASE(n) \
  case n: return gemm_rows<T, n>(columns, depth, a, a_row, a_depth, b, c, c_row, accumulate);
    CARNOT_CASE(1)
    CARNOT_CASE(2) CARNOT_CASE(3) CARNOT_CASE(4) CARNOT_CASE(5) CARNOT_CASE(6)
#if CARNOT_ROW_TILE > 6
        CARNOT_CASE(7) CARNOT_CASE(8) CARNOT_CASE(9) CARNOT_CASE(10) CARNOT_CASE(11) CARNOT_CASE(12)
#endif
#undef CARNOT_CASE
            default : return;
  }
}

template <class T, int Queries>
CARNOT_INLINE void scores_of(int tiles, int dim, const T* query, std::int64_t query_row, const T* const* key_tiles,
                             T scale, T* scores, std::int64_t scores_row) {
  constexpr int kParts = kTile / kLanes<T>;
  for (int tile = 0; tile < tiles; ++tile) {
    Vector<T> sum[Queries][kParts];
    for (int q = 0; q < Queries; ++q)
      for (int p = 0; p < kParts; ++p) sum[q][p] = Vector<T>{};
    const T* keys = key_tiles[tile];
    for (int d = 0; d < dim; ++d) {
      Vector<T> key[kParts];
      for (int p = 0; p < kParts; ++p) key[p] = load(keys + d * kTile + p * kLanes<T>);
      for (int q = 0; q < Queries; ++q) {
        const Vector<T> x = splat(query[q * query_row + d]);
        for (int p = 0; p < kParts; ++p) sum[q][p] += x * key[p];
      }
    }
    for (int q = 0; q < Queries; ++q)
      for (int p = 0; p < kParts; ++p) store(scores + q * scores_row + tile * kTile + p * kLanes<T>, sum[q][p] * scale);
  }
}

template <class T>
void scores(int queries, int tiles, int dim, const T* query, std::int64_t query_row, const T* const* key_tiles, T scale,
            T* out, std::int64_t out_row) {
  switch (queries) {
    case 1: return scores_of<T, 1>(tiles, dim, query, query_row, key_tiles, scale, out, out_row);
    case 2: return scores_of<T, 2>(tiles, dim, query, query_row, key_tiles, scale, out, out_row);
    case 3: return scores_of<T, 3>(tiles, dim, query, query_row, key_tiles, scale, out, out_row);
    case 4: return scores_of<T, 4>(tiles, dim, query, query_row, key_tiles, scale, out, out_row);
    default: return;
  }
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
                             const T* const* value_tiles, T* out, std::int64_t out_row) {
  constexpr int kL = kLanes<T>;
  Vector<T> sum[Queries][Parts];
  for (int q = 0; q < Queries; ++q)
    for (int p = 0; p < Parts; ++p) sum[q][p] = Vector<T>{};
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
                                      const T* const* value_tiles, T* out, std::int64_t out_row) {
  constexpr int kL = kLanes<T>;
  int d = 0;
  for (; d + 2 * kL <= dim; d += 2 * kL)
    values_of<T, Queries, 2>(tiles, dim, d, weights, weights_row, value_tiles, out, out_row);
  for (; d + kL <= dim; d += kL)
    values_of<T, Queries, 1>(tiles, dim, d, weights, weights_row, value_tiles, out, out_row);
  for (; d < dim; ++d) {
    for (int q = 0; q < Queries; ++q) {
      T sum = 0;
      for (int tile = 0; tile < tiles; ++tile)
        for (int j = 0; j < kTile; ++j)
          sum += weights[q * weights_row + tile * kTile + j] * value_tiles[tile][j * dim + d];
      out[q * out_row + d] = sum;
    }
  }
}

template <class T>
void weighted_values(int queries, int tiles, int dim, const T* weights, std::int64_t weights_row,
                     const T* const* value_tiles, T* out, std::int64_t out_row) {
  switch (queries) {
    case 1: return weighted_values_of<T, 1>(tiles, dim, weights, weights_row, value_tiles, out, out_row);
    case 2: return weighted_values_of<T, 2>(tiles, dim, weights, weights_row, value_tiles, out, out_row);
    case 3: return weighted_values_of<T, 3>(tiles, dim, weights, weights_row, value_tiles, out, out_row);
    case 4: return weighted_values_of<T, 4>(tiles, dim, weights, weights_row, value_tiles, out, out_row);
    default: return;
  }
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
  switch (queries) {
    case 1: return add_outer_of<T, 1>(count, dim, weights, weights_row, vectors, vectors_row, out);
    case 2: return add_outer_of<T, 2>(count, dim, weights, weights_row, vectors, vectors_row, out);
    case 3: return add_outer_of<T, 3>(count, dim, weights, weights_row, vectors, vectors_row, out);
    case 4: return add_outer_of<T, 4>(count, dim, weights, weights_row, vectors, vectors_row, out);
    default: return;
  }
}

template <class T>
void add(std::int64_t n, const T* x, T* y) {
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(y + i, load(y + i) + load(x + i));
  for (; i < n; ++i) y[i] += x[i];
}

template <class T>
CARNOT_INLINE T dot_of(std::int64_t n, const T* x, const T* y) {
  Vector<T> total{};
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) total += load(x + i) * load(y + i);
  T sum = lane_sum<T>(total);
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

template <class T>
T dot(std::int64_t n, const T* x, const T* y) {
  return dot_of(n, x, y);
}

template <class T>
T rms_norm(std::int64_t n, const T* x, const T* weight, T epsilon, T* y) {
  const T factor = 1 / std::sqrt(dot_of(n, x, x) / static_cast<T>(n) + epsilon);
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(y + i, load(x + i) * factor * load(weight + i));
  for (; i < n; ++i) y[i] = x[i] * factor * weight[i];
  return factor;
}

template <class T>
void rms_norm_backward(std::int64_t n, const T* dy, const T* x, const T* weight, T factor, T* dx, T* dweight) {
  Vector<T> total{};
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) total += load(dy + i) * load(weight + i) * load(x + i);
  T projected = lane_sum<T>(total);
  for (; i < n; ++i) projected += dy[i] * weight[i] * x[i];
  // d/dx of x f(x), f = (mean x^2 + eps)^(-1/2): f dy w - x f^3 mean(dy w x)
  const T pull = projected / static_cast<T>(n) * factor * factor * factor;
  for (i = 0; i + kLanes<T> <= n; i += kLanes<T>) {
    const Vector<T> g = load(dy + i), v = load(x + i);
    store(dweight + i, load(dweight + i) + g * v * factor);
    store(dx + i, g * load(weight + i) * factor - v * pull);
  }
  for (; i < n; ++i) {
    dweight[i] += dy[i] * x[i] * factor;
    dx[i] = dy[i] * weight[i] * factor - x[i] * pull;
  }
}

template <class T>
void swiglu(std::int64_t n, const T* gate, const T* up, T* out) {
  elementwise<T, 2, 1>(n, {gate, up}, {out}, [](const Vector<T>(&x)[2], Vector<T>(&y)[1], std::int64_t) {
    y[0] = x[0] / (exp_of(-x[0]) + T(1)) * x[1];
  });
}

template <class T>
void swiglu_backward(std::int64_t n, const T* dout, const T* gate, const T* up, T* dgate, T* dup) {
  elementwise<T, 3, 2>(n, {dout, gate, up}, {dgate, dup}, [](const Vector<T>(&x)[3], Vector<T>(&y)[2], std::int64_t) {
    const Vector<T> sigmoid = T(1) / (exp_of(-x[1]) + T(1));
    const Vector<T> silu = x[1] * sigmoid;
    y[0] = x[0] * x[2] * (sigmoid + silu * (T(1) - sigmoid));
    y[1] = x[0] * silu;
  });
}

template <class T>
void rotate(int half, const T* cosine, const T* sine, T sign, const T* x, T* y) {
  int i = 0;
  for (; i + kLanes<T> <= half; i += kLanes<T>) {
    const Vector<T> a = load(x + i), b = load(x + half + i), c = load(cosine + i), s = load(sine + i) * sign;
    store(y + i, a * c - b * s);
    store(y + half + i, b * c + a * s);
  }
  for (; i < half; ++i) {
    const T a = x[i], b = x[half + i], s = sine[i] * sign;
    y[i] = a * cosine[i] - b * s;
    y[half + i] = b * cosine[i] + a * s;
  }
}

template <class T>
constexpr Isa<T> table() {
  return {.name = CARNOT_ISA_NAME,
          .row_tile = CARNOT_ROW_TILE,
          .panel = 2 * kLanes<T>,
          .gemm_tile = gemm_tile<T>,
          .scores = scores<T>,
          .softmax = softmax<T>,
          .weighted_values = weighted_values<T>,
          .add_outer = add_outer<T>,
          .dot = dot<T>,
          .add = add<T>,
          .rms_norm = rms_norm<T>,
          .rms_norm_backward = rms_norm_backward<T>,
          .swiglu = swiglu<T>,
          .swiglu_backward = swiglu_backward<T>,
          .rotate = rotate<T>,
          .row_statistics = row_statistics<T>,
          .count_below = count_below<T>,
          .kept_statistics = kept_statistics<T>,
          .row_statistics_backward = row_statistics_backward<T>};
}

}  // namespace

extern const Isa<float> CARNOT_ISA_FLOAT;
extern const Isa<double> CARNOT_ISA_DOUBLE;
const Isa<float> CARNOT_ISA_FLOAT = table<float>();
const Isa<double> CARNOT_ISA_DOUBLE = table<double>();

}  // namespace carnot::kernel
