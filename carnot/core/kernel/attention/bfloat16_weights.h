// kernel/attention/bfloat16_weights.h -- what bfloat16 attention computes between its two products.
//
// Included in bfloat16_table.cpp: everything is in its anonymous namespace, once per kernel set.
#pragma once

#include <cmath>
#include <cstdint>

#include "carnot/core/kernel/gemm/bfloat16_kernels.h"
#include "carnot/core/kernel/vectors.h"

namespace carnot::kernel {
namespace {

float exponentials(int count, int padded, float scale, float* scores, BFloat16* weights) {
  constexpr int kL = kLanes<float>;
  const int whole = (count + kL - 1) / kL * kL;
  for (int j = count; j < whole; ++j) scores[j] = -INFINITY;
  Vector<float> best = load(scores);
  for (int j = kL; j < whole; j += kL) {
    const Vector<float> x = load(scores + j);
    best = x > best ? x : best;
  }
  const float maximum = lane_max<float>(best);
  Vector<float> total{};
  for (int j = 0; j < whole; j += kL) {
    store(weights + j, exp_of((load(scores + j) - maximum) * scale));
    total += load(weights + j);
  }
  for (int j = whole; j < padded; j += kL) store(weights + j, Vector<float>{});
  return lane_sum<float>(total);
}

void scaled(std::int64_t n, const float* x, float factor, BFloat16* y) {
  constexpr int kL = kLanes<float>;
  std::int64_t i = 0;
  for (; i + kL <= n; i += kL) store(y + i, load(x + i) * factor);
  for (; i < n; ++i) y[i] = rounded(x[i] * factor);
}

}  // namespace
}  // namespace carnot::kernel
