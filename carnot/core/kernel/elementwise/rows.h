// kernel/elementwise/rows.h -- loops along a row: conversions, sums, RMSNorm, gated MLP, rotation, with their
// gradients.
//
// Included in kernel_table.cpp: everything is in its anonymous namespace, once per instruction set.
#pragma once

#include <cmath>
#include <cstdint>

#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/vectors.h"

namespace carnot::kernel {
namespace {

template <class S>
void widen(std::int64_t n, const S* x, Computed<S>* y) {
  constexpr int kL = kLanes<Computed<S>>;
  std::int64_t i = 0;
  for (; i + kL <= n; i += kL) store(y + i, load(x + i));
  for (; i < n; ++i) y[i] = widened(x[i]);
}

template <class S>
void round(std::int64_t n, const Computed<S>* x, S* y) {
  constexpr int kL = kLanes<Computed<S>>;
  std::int64_t i = 0;
  for (; i + kL <= n; i += kL) store(y + i, load(x + i));
  for (; i < n; ++i) y[i] = stored<S>(x[i]);
}

template <class S>
void add(std::int64_t n, const S* x, Computed<S>* y) {
  constexpr int kL = kLanes<Computed<S>>;
  std::int64_t i = 0;
  for (; i + kL <= n; i += kL) store(y + i, load(y + i) + load(x + i));
  for (; i < n; ++i) y[i] += widened(x[i]);
}

template <class S>
CARNOT_INLINE Computed<S> dot_of(std::int64_t n, const S* x, const S* y) {
  using T = Computed<S>;
  Vector<T> total{};
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) total += load(x + i) * load(y + i);
  T sum = lane_sum<T>(total);
  for (; i < n; ++i) sum += widened(x[i]) * widened(y[i]);
  return sum;
}

template <class T>
T dot(std::int64_t n, const T* x, const T* y) {
  return dot_of(n, x, y);
}

template <class S>
Computed<S> rms_norm(std::int64_t n, const S* x, const S* weight, Computed<S> offset, Computed<S> epsilon, S* y) {
  using T = Computed<S>;
  const T factor = 1 / std::sqrt(dot_of(n, x, x) / static_cast<T>(n) + epsilon);
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) store(y + i, load(x + i) * factor * (load(weight + i) + offset));
  for (; i < n; ++i) y[i] = stored<S>(widened(x[i]) * factor * (widened(weight[i]) + offset));
  return factor;
}

template <class S>
void rms_norm_backward(std::int64_t n, const S* dy, const S* x, const S* weight, Computed<S> offset, Computed<S> factor,
                       S* dx, Computed<S>* dweight) {
  using T = Computed<S>;
  Vector<T> total{};
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) total += load(dy + i) * (load(weight + i) + offset) * load(x + i);
  T projected = lane_sum<T>(total);
  for (; i < n; ++i) projected += widened(dy[i]) * (widened(weight[i]) + offset) * widened(x[i]);
  // d/dx of x f(x), f = (mean x^2 + eps)^(-1/2): f dy w - x f^3 mean(dy w x)
  const T pull = projected / static_cast<T>(n) * factor * factor * factor;
  for (i = 0; i + kLanes<T> <= n; i += kLanes<T>) {
    const Vector<T> g = load(dy + i), v = load(x + i);
    store(dweight + i, load(dweight + i) + g * v * factor);
    store(dx + i, g * (load(weight + i) + offset) * factor - v * pull);
  }
  for (; i < n; ++i) {
    const T g = widened(dy[i]), v = widened(x[i]);
    dweight[i] += g * v * factor;
    dx[i] = stored<S>(g * (widened(weight[i]) + offset) * factor - v * pull);
  }
}

template <class S>
void swiglu(std::int64_t n, const S* gate, const S* up, S* out) {
  using T = Computed<S>;
  elementwise<S, 2, 1>(n, {gate, up}, {out}, [](const Vector<T>(&x)[2], Vector<T>(&y)[1], std::int64_t) {
    y[0] = x[0] / (exp_of(-x[0]) + T(1)) * x[1];
  });
}

template <class S>
void swiglu_backward(std::int64_t n, const S* dout, const S* gate, const S* up, S* dgate, S* dup) {
  using T = Computed<S>;
  elementwise<S, 3, 2>(n, {dout, gate, up}, {dgate, dup}, [](const Vector<T>(&x)[3], Vector<T>(&y)[2], std::int64_t) {
    const Vector<T> sigmoid = T(1) / (exp_of(-x[1]) + T(1));
    const Vector<T> silu = x[1] * sigmoid;
    y[0] = x[0] * x[2] * (sigmoid + silu * (T(1) - sigmoid));
    y[1] = x[0] * silu;
  });
}

// gelu(x) = x / (1 + exp(-z)), z = 2 sqrt(2 / pi) (x + 0.044715 x^3), as 1 + tanh(z / 2) = 2 / (1 + exp(-z)).
template <class T>
constexpr T kGeluLinear = T(1.5957691216057308L);
template <class T>
constexpr T kGeluCubic = T(0.07135481627260025L);

template <class T>
CARNOT_INLINE Vector<T> gelu_exponent(Vector<T> x) {
  return x * (x * x * kGeluCubic<T> + kGeluLinear<T>);
}

template <class S>
void geglu(std::int64_t n, const S* gate, const S* up, S* out) {
  using T = Computed<S>;
  elementwise<S, 2, 1>(n, {gate, up}, {out}, [](const Vector<T>(&x)[2], Vector<T>(&y)[1], std::int64_t) {
    y[0] = x[0] / (exp_of(-gelu_exponent<T>(x[0])) + T(1)) * x[1];
  });
}

template <class S>
void geglu_backward(std::int64_t n, const S* dout, const S* gate, const S* up, S* dgate, S* dup) {
  using T = Computed<S>;
  elementwise<S, 3, 2>(n, {dout, gate, up}, {dgate, dup}, [](const Vector<T>(&x)[3], Vector<T>(&y)[2], std::int64_t) {
    const Vector<T> sigmoid = T(1) / (exp_of(-gelu_exponent<T>(x[1])) + T(1));
    const Vector<T> gelu = x[1] * sigmoid, slope = x[1] * x[1] * (3 * kGeluCubic<T>)+kGeluLinear<T>;
    y[0] = x[0] * x[2] * (sigmoid + gelu * (T(1) - sigmoid) * slope);
    y[1] = x[0] * gelu;
  });
}

template <class S>
void sigmoid_product(std::int64_t n, const S* gate, const S* up, S* out) {
  using T = Computed<S>;
  elementwise<S, 2, 1>(n, {gate, up}, {out}, [](const Vector<T>(&x)[2], Vector<T>(&y)[1], std::int64_t) {
    y[0] = x[1] / (exp_of(-x[0]) + T(1));
  });
}

template <class S>
void sigmoid_product_backward(std::int64_t n, const S* dout, const S* gate, const S* up, S* dgate, S* dup) {
  using T = Computed<S>;
  elementwise<S, 3, 2>(n, {dout, gate, up}, {dgate, dup}, [](const Vector<T>(&x)[3], Vector<T>(&y)[2], std::int64_t) {
    const Vector<T> sigmoid = T(1) / (exp_of(-x[1]) + T(1));
    y[0] = x[0] * x[2] * sigmoid * (T(1) - sigmoid);
    y[1] = x[0] * sigmoid;
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

}  // namespace
}  // namespace carnot::kernel
