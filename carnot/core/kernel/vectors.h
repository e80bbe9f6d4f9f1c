// kernel/vectors.h -- vectors of the width that kernel_table.cpp is compiled for: loads, fixed-order sums, exponential.
//
// Included in kernel_table.cpp: everything is in its anonymous namespace, once per instruction set.
#pragma once

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include <cmath>
#include <cstdint>
#include <utility>

#include "carnot/core/kernel/bfloat16.h"

#define CARNOT_INLINE [[gnu::always_inline]] inline

namespace carnot::kernel {
namespace {

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(CARNOT_VECTOR_BYTES)));
  typedef float unaligned __attribute__((vector_size(CARNOT_VECTOR_BYTES), aligned(4), may_alias));
  typedef std::int32_t integer;
  typedef std::int32_t bits __attribute__((vector_size(CARNOT_VECTOR_BYTES)));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(CARNOT_VECTOR_BYTES)));
  typedef double unaligned __attribute__((vector_size(CARNOT_VECTOR_BYTES), aligned(8), may_alias));
  typedef std::int64_t integer;
  typedef std::int64_t bits __attribute__((vector_size(CARNOT_VECTOR_BYTES)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
constexpr int kLanes = CARNOT_VECTOR_BYTES / static_cast<int>(sizeof(T));

template <class T>
CARNOT_INLINE Vector<T> load(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::unaligned*>(p);
}
template <class T>
CARNOT_INLINE void store(T* p, Vector<T> v) {
  *reinterpret_cast<typename VectorOf<T>::unaligned*>(p) = v;
}

// Numbers stored as bfloat16 that fill a vector of float32.
typedef std::uint16_t HalfBits __attribute__((vector_size(CARNOT_VECTOR_BYTES / 2)));
typedef std::uint32_t FloatBits __attribute__((vector_size(CARNOT_VECTOR_BYTES)));

// GCC 12 converts the elements one by one, and warns of an undefined operand in the instructions without mask.
CARNOT_INLINE FloatBits wide_bits(HalfBits half) {
#ifdef __AVX512F__
  return (FloatBits)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)half);
#else
  return __builtin_convertvector(half, FloatBits);
#endif
}
CARNOT_INLINE HalfBits half_bits(FloatBits bits) {
#ifdef __AVX512F__
  return (HalfBits)_mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)bits);
#else
  return __builtin_convertvector(bits, HalfBits);
#endif
}

CARNOT_INLINE Vector<float> load(const BFloat16* p) {
  HalfBits half;
  __builtin_memcpy(&half, p, sizeof(half));
  return reinterpret_cast<Vector<float>>(wide_bits(half) << 16);
}
CARNOT_INLINE void store(BFloat16* p, Vector<float> v) {
  const FloatBits bits = reinterpret_cast<FloatBits>(v);
  const FloatBits nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const FloatBits quiet = (bits >> 16) | 0x40;
  const HalfBits half = half_bits(v != v ? quiet : nearest);
  __builtin_memcpy(p, &half, sizeof(half));
}

template <class T>
CARNOT_INLINE Vector<T> splat(T x) {
  return x - Vector<T>{};  // adding zero would cost an addition each time, because it turns -0 into 0
}

// Lanes are added pairwise by halving: a fixed order for every caller.
template <class T>
CARNOT_INLINE T lane_sum(Vector<T> v) {
  T lanes[kLanes<T>];
  store(lanes, v);
  for (int width = kLanes<T> / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  return lanes[0];
}
template <class T>
CARNOT_INLINE T lane_max(Vector<T> v) {
  T lanes[kLanes<T>];
  store(lanes, v);
  T best = lanes[0];
  for (int i = 1; i < kLanes<T>; ++i) best = lanes[i] > best ? lanes[i] : best;
  return best;
}

// One step of lane_sums: behind it, a lane whose index has the bit `Width` holds a sum of the second half's vectors.
template <class T, int Width, int... Lane>
CARNOT_INLINE void add_lane_halves(Vector<T> (&x)[kLanes<T>], std::integer_sequence<int, Lane...>) {
  for (int i = 0; i < Width; ++i) {
    const Vector<T> a = x[i], b = x[i + Width];
    x[i] = __builtin_shufflevector(a, b, (Lane & Width ? kLanes<T> + Lane - Width : Lane)...) +
           __builtin_shufflevector(a, b, (Lane & Width ? kLanes<T> + Lane : Lane + Width)...);
  }
  if constexpr (Width > 1) add_lane_halves<T, Width / 2>(x, std::integer_sequence<int, Lane...>{});
}
// Lane i is the lane_sum of vector i.
template <class T>
CARNOT_INLINE Vector<T> lane_sums(Vector<T> (&x)[kLanes<T>]) {
  add_lane_halves<T, kLanes<T> / 2>(x, std::make_integer_sequence<int, kLanes<T>>{});
  return x[0];
}

// exp as 2^n times a polynomial in the remainder (Cephes' expf): relative error below 2e-7; inputs above 88 saturate,
// inputs below -87.3 return 0.
CARNOT_INLINE Vector<float> exp_of(Vector<float> x) {
  using V = Vector<float>;
  using Bits = VectorOf<float>::bits;
  const V low = splat(-87.3f), high = splat(88.0f);
  const auto vanishes = x < low;
  x = x > high ? high : x;
  x = vanishes ? low : x;
  const V shifted = x * 1.44269504088896341f + 12582912.0f;  // 1.5 * 2^23: the fraction falls off
  const V n = shifted - 12582912.0f;
  V r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  V p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Bits exponent = __builtin_convertvector(n, Bits) + 127;
  const V power = reinterpret_cast<V>(exponent << 23);
  const V result = p * power;
  return vanishes ? V{} : result;
}
// The same for inputs that are not above zero, in three quarters of the steps: inputs below -87.3 return exp(-87.3).
// NaN stays NaN if its last nine bits are zeros.
CARNOT_INLINE Vector<float> exp_of_difference(Vector<float> x) {
  using V = Vector<float>;
  using Bits = VectorOf<float>::bits;
  const V low = splat(-87.3f);
  x = x < low ? low : x;
  const V shifted = x * 1.44269504088896341f + 12582912.0f;
  const V n = shifted - 12582912.0f;
  V r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  V p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // The last bits of `shifted` are n, which is added to the exponent.
  return reinterpret_cast<V>(reinterpret_cast<Bits>(p) + (reinterpret_cast<Bits>(shifted) << 23));
}
CARNOT_INLINE Vector<double> exp_of(Vector<double> x) {
  double lanes[kLanes<double>];
  store(lanes, x);
  for (double& lane : lanes) lane = std::exp(lane);
  return load(lanes);
}
CARNOT_INLINE Vector<double> exp_of_difference(Vector<double> x) { return exp_of(x); }

// Runs a vector body over n elements stored as S; the last, partial vector goes through padded copies. The body also
// gets the index of its first element.
template <class S, int Inputs, int Outputs, class Body>
CARNOT_INLINE void elementwise(std::int64_t n, const S* const (&in)[Inputs], S* const (&out)[Outputs], Body body) {
  using T = Computed<S>;
  constexpr int kL = kLanes<T>;
  std::int64_t i = 0;
  for (; i + kL <= n; i += kL) {
    Vector<T> x[Inputs], y[Outputs];
    for (int k = 0; k < Inputs; ++k) x[k] = load(in[k] + i);
    body(x, y, i);
    for (int k = 0; k < Outputs; ++k) store(out[k] + i, y[k]);
  }
  if (i == n) return;
  S padded[Inputs][kL] = {};
  Vector<T> x[Inputs], y[Outputs];
  for (int k = 0; k < Inputs; ++k) {
    for (std::int64_t j = i; j < n; ++j) padded[k][j - i] = in[k][j];
    x[k] = load(padded[k]);
  }
  body(x, y, i);
  for (int k = 0; k < Outputs; ++k) {
    S last[kL];
    store(last, y[k]);
    for (std::int64_t j = i; j < n; ++j) out[k][j] = last[j - i];
  }
}

}  // namespace
}  // namespace carnot::kernel
