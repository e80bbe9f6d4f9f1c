// kernel/elementwise/rows.h -- loops along a row: sums, RMSNorm, gated MLP, rotation, with their gradients.
//
// Part of kernel_table.cpp: everything is in its anonymous namespace, once per instruction set.
#pragma once

#include <cmath>
#include <cstdint>

#include "carnot/kernel/dispatch.h"
#include "carnot/kernel/vectors.h"

namespace carnot::kernel {
namespace {

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

}  // namespace
}  // namespace carnot::kernel
