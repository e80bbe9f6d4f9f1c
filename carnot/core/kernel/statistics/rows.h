// kernel/statistics/rows.h -- logsumexp and entropy of a row of logits, over all entries or those that a cut keeps.
//
// Included in kernel_table.cpp: everything is in its anonymous namespace, once per instruction set.
#pragma once

#include <cmath>
#include <cstdint>

#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/vectors.h"

namespace carnot::kernel {
namespace {

// Which entries of a row count, as a filter for vectors computed from it; `first` is the index of lane 0.
template <class T>
struct KeepAll {
  CARNOT_INLINE Vector<T> operator()(Vector<T> values, Vector<T>, std::int64_t) const { return values; }
};
template <class T>
struct KeepAboveCut {
  using Bits = typename VectorOf<T>::bits;
  using Index = typename VectorOf<T>::integer;

  CARNOT_INLINE explicit KeepAboveCut(Cut<T> cut) : threshold(splat(cut.threshold)), tie_limit(cut.tie_limit) {
    for (int i = 0; i < kLanes<T>; ++i) lane[i] = static_cast<Index>(i);
  }
  // NaN is kept, so that it propagates.
  CARNOT_INLINE Vector<T> operator()(Vector<T> values, Vector<T> z, std::int64_t first) const {
    const auto behind_limit = lane >= static_cast<Index>(tie_limit - first);
    const auto removed = (z < threshold) | ((z == threshold) & behind_limit);
    return removed ? Vector<T>{} : values;
  }

  Vector<T> threshold;
  std::int64_t tie_limit;
  Bits lane{};
};

struct AnyExponential {
  template <class V>
  CARNOT_INLINE V operator()(V x) const {
    return exp_of(x);
  }
};
struct ExponentialOfDifference {
  template <class V>
  CARNOT_INLINE V operator()(V x) const {
    return exp_of_difference(x);
  }
};

// The sums over the entries that `keep` keeps; `maximum` is theirs.
template <class Exponential, class T, class Keep>
CARNOT_INLINE SegmentStatistics<T> softmax_sums(std::int64_t n, const T* z, T maximum, Keep keep) {
  constexpr Exponential exponential;
  constexpr int kL = kLanes<T>;
  Vector<T> sums{}, products{};
  std::int64_t i = 0;
  for (; i + kL <= n; i += kL) {
    const Vector<T> x = load(z + i), d = x - maximum;
    const Vector<T> e = keep(exponential(d), x, i);
    sums += e;
    products += e * d;
  }
  T sum = lane_sum<T>(sums), product = lane_sum<T>(products);
  if (i < n) {
    T last[kL], es[kL];
    store(last, splat(maximum));
    for (std::int64_t j = i; j < n; ++j) last[j - i] = z[j];
    const Vector<T> x = load(last), d = x - maximum;
    store(es, keep(exponential(d), x, i));
    store(last, d);
    for (std::int64_t j = i; j < n; ++j) {
      sum += es[j - i];
      product += es[j - i] * last[j - i];
    }
  }
  return {.maximum = maximum, .sum = sum, .product = product};
}

// logsumexp and entropy of the entries that `keep` keeps; `maximum` is theirs.
template <class T, class Keep>
CARNOT_INLINE void softmax_statistics(std::int64_t n, const T* z, T maximum, Keep keep, T* logsumexp, T* entropy) {
  // H = log sum e^d - sum e^d d / sum e^d with d = z - max: no cancellation against a large logsumexp.
  const SegmentStatistics<T> sums = softmax_sums<AnyExponential>(n, z, maximum, keep);
  const T log_sum = std::log(sums.sum);
  const T h = log_sum - sums.product / sums.sum;
  *logsumexp = maximum + log_sum;
  *entropy = h < 0 ? 0 : h;
}

/// Divides the logits of [begin, end) by the temperature; returns the largest.
template <class T>
CARNOT_INLINE T scaled_maximum(std::int64_t begin, std::int64_t end, T inverse_temperature, T* logits) {
  constexpr int kL = kLanes<T>;
  Vector<T> best = splat(T(-INFINITY));
  T maximum = -INFINITY;
  std::int64_t i = begin;
  for (; i + kL <= end; i += kL) {
    const Vector<T> z = load(logits + i) * inverse_temperature;
    store(logits + i, z);
    best = z > best ? z : best;
  }
  for (; i < end; ++i) {
    logits[i] *= inverse_temperature;
    maximum = logits[i] > maximum ? logits[i] : maximum;
  }
  const T in_lanes = lane_max<T>(best);
  return in_lanes > maximum ? in_lanes : maximum;
}

template <class T>
CARNOT_INLINE T largest_of(std::int64_t n, const T* z) {
  Vector<T> best = splat(T(-INFINITY));
  T maximum = -INFINITY;
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    const Vector<T> x = load(z + i);
    best = x > best ? x : best;
  }
  for (; i < n; ++i) maximum = z[i] > maximum ? z[i] : maximum;
  const T in_lanes = lane_max<T>(best);
  return in_lanes > maximum ? in_lanes : maximum;
}

template <class T>
void row_statistics(std::int64_t n, T inverse_temperature, T* logits, T* logsumexp, T* entropy) {
  const T maximum = scaled_maximum(0, n, inverse_temperature, logits);
  softmax_statistics(n, logits, maximum, KeepAll<T>{}, logsumexp, entropy);
}

template <class T>
void segment_statistics(std::int64_t n, T inverse_temperature, T* logits, SegmentStatistics<T>* out) {
  const T maximum =
      inverse_temperature == 1 ? largest_of(n, logits) : scaled_maximum(0, n, inverse_temperature, logits);
  *out = softmax_sums<ExponentialOfDifference>(n, logits, maximum, KeepAll<T>{});
}

// Keeps all entries, and stores the drawable ones; their total is added in softmax's order.
template <class T>
struct KeepForDraw {
  CARNOT_INLINE Vector<T> operator()(Vector<T> values, Vector<T>, std::int64_t first) const {
    if (first + kLanes<T> <= drawable) {
      store(exponentials + first, values);
      *total += values;
    }
    return values;
  }

  std::int64_t drawable;
  T* exponentials;
  Vector<T>* total;
};

template <class T>
void row_draw(std::int64_t n, std::int64_t drawable, T inverse_temperature, T* logits, T* logsumexp, T* entropy,
              T* exponentials, T* factor) {
  constexpr int kL = kLanes<T>;
  const T maximum = scaled_maximum(0, drawable, inverse_temperature, logits);
  const T of_others = scaled_maximum(drawable, n, inverse_temperature, logits);
  const std::int64_t whole = drawable / kL * kL;
  Vector<T> total{};
  if (of_others > maximum) {  // a token that cannot be drawn is the likeliest
    softmax_statistics(n, logits, of_others, KeepAll<T>{}, logsumexp, entropy);
    for (std::int64_t i = 0; i < whole; i += kL) {
      const Vector<T> e = exp_of(load(logits + i) - maximum);
      store(exponentials + i, e);
      total += e;
    }
  } else {
    softmax_statistics(n, logits, maximum, KeepForDraw<T>{drawable, exponentials, &total}, logsumexp, entropy);
  }
  if (whole < drawable) {
    T last[kL];
    store(last, splat(T(-INFINITY)));
    for (std::int64_t j = whole; j < drawable; ++j) last[j - whole] = logits[j];
    const Vector<T> e = exp_of(load(last) - maximum);
    total += e;
    store(last, e);
    for (std::int64_t j = whole; j < drawable; ++j) exponentials[j] = last[j - whole];
  }
  *factor = 1 / lane_sum<T>(total);
}

typedef double FourDoubles __attribute__((vector_size(4 * sizeof(double))));

template <class T>
CARNOT_INLINE FourDoubles four_doubles(const T* x, T factor) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  Four four;
  __builtin_memcpy(&four, x, sizeof(four));
  return __builtin_convertvector(four * factor, FourDoubles);
}

// Sums of `Strips` strips together, which hides the latency of an addition.
template <class T, int Strips>
CARNOT_INLINE void sums_of_strips(std::int64_t size, T factor, const T* x, double* sums) {
  FourDoubles lanes[Strips] = {};
  std::int64_t i = 0;
  for (; i + 4 <= size; i += 4)
    for (int s = 0; s < Strips; ++s) lanes[s] += four_doubles(x + s * size + i, factor);
  for (int s = 0; s < Strips; ++s) {
    double lane[4];
    __builtin_memcpy(lane, &lanes[s], sizeof(lane));
    for (std::int64_t j = i; j < size; ++j) lane[0] += static_cast<double>(x[s * size + j] * factor);
    sums[s] = (lane[0] + lane[1]) + (lane[2] + lane[3]);
  }
}

template <class T>
void strip_sums(std::int64_t n, std::int64_t strip, T factor, const T* x, double* sums) {
  constexpr int kTogether = 8;
  std::int64_t begin = 0;
  for (; begin + kTogether * strip <= n; begin += kTogether * strip, sums += kTogether)
    sums_of_strips<T, kTogether>(strip, factor, x + begin, sums);
  for (; begin < n; begin += strip, ++sums)
    sums_of_strips<T, 1>(strip < n - begin ? strip : n - begin, factor, x + begin, sums);
}

template <class T>
void count_below(std::int64_t n, const T* x, const T* pivots, std::int64_t* counts) {
  using Bits = typename VectorOf<T>::bits;
  constexpr int kL = kLanes<T>;
  const Vector<T> p0 = splat(pivots[0]), p1 = splat(pivots[1]), p2 = splat(pivots[2]);
  Bits below0{}, below1{}, below2{};  // a true comparison is -1
  std::int64_t i = 0;
  for (; i + kL <= n; i += kL) {
    const Vector<T> v = load(x + i);
    below0 -= v < p0;
    below1 -= v < p1;
    below2 -= v < p2;
  }
  for (int j = 0; j < 3; ++j) {
    const Bits& below = j == 0 ? below0 : j == 1 ? below1 : below2;
    counts[j] = 0;
    for (int lane = 0; lane < kL; ++lane) counts[j] += below[lane];
    for (std::int64_t rest = i; rest < n; ++rest) counts[j] += x[rest] < pivots[j] ? 1 : 0;
  }
}

template <class T>
void kept_statistics(std::int64_t n, const T* z, Cut<T> cut, T* logsumexp, T* entropy) {
  const T maximum = largest_of(n, z);  // the likeliest entry is always kept
  softmax_statistics(n, z, maximum, KeepAboveCut<T>(cut), logsumexp, entropy);
}

template <class T>
void row_statistics_backward(std::int64_t n, T inverse_temperature, T* logits, const RowGradient<T>& row,
                             const KeptGradient<T>* kept) {
  const T logsumexp = row.logsumexp, entropy = row.entropy;
  const T through_p = (row.g_logsumexp - row.g_logprob) * inverse_temperature;
  const T through_entropy = row.g_entropy * inverse_temperature;
  if (!kept) {
    elementwise<T, 1, 1>(n, {logits}, {logits}, [=](const Vector<T>(&x)[1], Vector<T>(&y)[1], std::int64_t) {
      const Vector<T> log_p = x[0] * inverse_temperature - logsumexp;
      y[0] = exp_of(log_p) * (through_p - through_entropy * (log_p + entropy));
    });
    return;
  }
  // q = p sum p / sum of kept p: one exponential serves both.
  const T shift = logsumexp - kept->logsumexp, ratio = std::exp(shift), kept_entropy = kept->entropy + shift;
  const T through_kept = kept->g_entropy * inverse_temperature * ratio;
  const KeepAboveCut<T> keep(kept->cut);
  elementwise<T, 1, 1>(n, {logits}, {logits}, [=](const Vector<T>(&x)[1], Vector<T>(&y)[1], std::int64_t first) {
    const Vector<T> z = x[0] * inverse_temperature, log_p = z - logsumexp, p = exp_of(log_p);
    y[0] = p * (through_p - through_entropy * (log_p + entropy)) -
           keep(p * (log_p + kept_entropy) * through_kept, z, first);
  });
}

}  // namespace
}  // namespace carnot::kernel
