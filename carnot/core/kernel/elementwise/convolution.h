// kernel/elementwise/convolution.h -- a short causal convolution of each channel for itself, row by row, with
// gradients.
//
// Included in kernel_table.cpp: everything is in its anonymous namespace, once per instruction set.
#pragma once

#include <cstdint>

#include "carnot/core/kernel/elementwise/rows.h"

namespace carnot::kernel {
namespace {

template <class S>
void multiply(std::int64_t n, const S* x, const S* y, S* out) {
  using T = Computed<S>;
  elementwise<S, 2, 1>(n, {x, y}, {out}, [](const Vector<T>(&in)[2], Vector<T>(&product)[1], std::int64_t) {
    product[0] = in[0] * in[1];
  });
}

template <class S>
void multiply_backward(std::int64_t n, const Computed<S>* dout, const S* x, const S* y, S* dx, S* dy) {
  using T = Computed<S>;
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    const Vector<T> g = load(dout + i), a = load(x + i), b = load(y + i);
    store(dx + i, g * b);
    store(dy + i, g * a);
  }
  for (; i < n; ++i) {
    const T a = widened(x[i]), b = widened(y[i]);
    dx[i] = stored<S>(dout[i] * b);
    dy[i] = stored<S>(dout[i] * a);
  }
}

template <class S>
void convolve(std::int64_t n, int taps, const S* const* rows, const Computed<S>* weights, std::int64_t stride,
              const S* gate, S* out) {
  using T = Computed<S>;
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    Vector<T> sum{};
    for (int tap = 0; tap < taps; ++tap)
      if (rows[tap] != nullptr) sum += load(rows[tap] + i) * load(weights + tap * stride + i);
    store(out + i, sum * load(gate + i));
  }
  for (; i < n; ++i) {
    T sum = 0;
    for (int tap = 0; tap < taps; ++tap)
      if (rows[tap] != nullptr) sum += widened(rows[tap][i]) * weights[tap * stride + i];
    out[i] = stored<S>(sum * widened(gate[i]));
  }
}

template <class S>
void convolve_backward(std::int64_t n, int taps, const S* const* rows, const Computed<S>* weights, std::int64_t stride,
                       const S* gate, const S* dout, Computed<S>* const* drows, Computed<S>* dweights, S* dgate) {
  using T = Computed<S>;
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    const Vector<T> g = load(dout + i), dsum = g * load(gate + i);
    Vector<T> sum{};
    for (int tap = 0; tap < taps; ++tap) {
      if (rows[tap] == nullptr) continue;
      const Vector<T> x = load(rows[tap] + i), w = load(weights + tap * stride + i);
      sum += x * w;
      store(drows[tap] + i, load(drows[tap] + i) + dsum * w);
      store(dweights + tap * stride + i, load(dweights + tap * stride + i) + dsum * x);
    }
    store(dgate + i, g * sum);
  }
  for (; i < n; ++i) {
    const T g = widened(dout[i]), dsum = g * widened(gate[i]);
    T sum = 0;
    for (int tap = 0; tap < taps; ++tap) {
      if (rows[tap] == nullptr) continue;
      const T x = widened(rows[tap][i]), w = weights[tap * stride + i];
      sum += x * w;
      drows[tap][i] += dsum * w;
      dweights[tap * stride + i] += dsum * x;
    }
    dgate[i] = stored<S>(g * sum);
  }
}

}  // namespace
}  // namespace carnot::kernel
