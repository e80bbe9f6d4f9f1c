// kernel/recurrent/delta_steps.h -- the inner loops of the gated delta rule: one row's step in one panel of a state.
//
// Included in kernel_table.cpp: everything is in its anonymous namespace, once per instruction set.
#pragma once

#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/elementwise/rows.h"
#include "carnot/core/kernel/vectors.h"

namespace carnot::kernel {
namespace {

// Vectors of a panel's row that are computed together, and sums over rows that are independent until their end, enough
// of both to hide the latency of an addition.
constexpr int kDeltaVectors = 2;
constexpr int kDeltaSums = 4;
template <class T>
constexpr int kDeltaStride = kDeltaVectors * kLanes<T>;

template <class T>
struct DeltaSums {
  Vector<T> part[kDeltaSums][kDeltaVectors] = {};

  CARNOT_INLINE Vector<T> total(int v) const { return (part[0][v] + part[1][v]) + (part[2][v] + part[3][v]); }
};

// body(d, sums): row d adds to the sums of its number modulo kDeltaSums, rows behind the last multiple of it to the
// first.
template <class T, class Body>
CARNOT_INLINE void over_rows(int dim, DeltaSums<T>& sums, const Body& body) {
  int d = 0;
  for (; d + kDeltaSums <= dim; d += kDeltaSums)
    for (int s = 0; s < kDeltaSums; ++s) body(d + s, sums.part[s]);
  for (; d < dim; ++d) body(d, sums.part[0]);
}

// The columns' sums over rows of weight times number.
template <class T>
CARNOT_INLINE DeltaSums<T> weighted_rows(int dim, const T* weights, const T* panel) {
  DeltaSums<T> sums;
  over_rows<T>(dim, sums, [&](int d, Vector<T>(&sum)[kDeltaVectors]) {
    for (int v = 0; v < kDeltaVectors; ++v) sum[v] += weights[d] * load(panel + d * kDeltaColumns<T> + v * kLanes<T>);
  });
  return sums;
}

template <class T>
void delta_step(const DeltaStep<T>& in, const T* value, T* after, T* residual, T* out) {
  const DeltaStep<T> step = in;
  for (int c = 0; c < kDeltaColumns<T>; c += kDeltaStride<T>) {
    const DeltaSums<T> recalled = weighted_rows(step.dim, step.key, step.before + c);
    Vector<T> delta[kDeltaVectors];
    for (int v = 0; v < kDeltaVectors; ++v) {
      const int column = c + v * kLanes<T>;
      const Vector<T> rest = load(value + column) - step.decay * recalled.total(v);
      store(residual + column, rest);
      delta[v] = step.beta * rest;
    }
    DeltaSums<T> sums;
    over_rows<T>(step.dim, sums, [&](int d, Vector<T>(&sum)[kDeltaVectors]) {
      const T key = step.key[d], query = step.query[d];
      for (int v = 0; v < kDeltaVectors; ++v) {
        const int place = d * kDeltaColumns<T> + c + v * kLanes<T>;
        const Vector<T> state = step.decay * load(step.before + place) + key * delta[v];
        store(after + place, state);
        sum[v] += query * state;
      }
    });
    for (int v = 0; v < kDeltaVectors; ++v) store(out + c + v * kLanes<T>, sums.total(v));
  }
}

// What all rows of the state read: by column, the gradient of the output, delta = beta residual, and the gradients of
// the recalled value and of before^T key.
template <class T>
struct DeltaColumnGradients {
  T dout[kDeltaColumns<T>], delta[kDeltaColumns<T>], drecalled[kDeltaColumns<T>], dfound[kDeltaColumns<T>];
};

// Gradient of the residual: of delta = key^T dafter + (key . query) dout, times beta. Returns sum of delta dout.
template <class T>
CARNOT_INLINE T delta_column_gradients(const DeltaStep<T>& step, const T* residual, const T* dout, const T* dstate,
                                       T* dvalue, T* dbeta, DeltaColumnGradients<T>& columns) {
  const T aligned = dot_of(step.dim, step.key, step.query);
  Vector<T> beta_sum{}, output_sum{};
  for (int c = 0; c < kDeltaColumns<T>; c += kDeltaStride<T>) {
    const DeltaSums<T> written = weighted_rows(step.dim, step.key, dstate + c);
    for (int v = 0; v < kDeltaVectors; ++v) {
      const int column = c + v * kLanes<T>;
      const Vector<T> g = load(dout + column), rest = load(residual + column), delta = step.beta * rest;
      const Vector<T> ddelta = written.total(v) + aligned * g, dresidual = step.beta * ddelta;
      beta_sum += rest * ddelta;
      output_sum += delta * g;
      store(dvalue + column, dresidual);
      store(columns.dout + column, g);
      store(columns.delta + column, delta);
      store(columns.drecalled + column, -dresidual);
      store(columns.dfound + column, -step.decay * dresidual);
    }
  }
  *dbeta += lane_sum<T>(beta_sum);
  return lane_sum<T>(output_sum);
}

// Replaces the gradient of row d of the state. Products that are summed over columns: dquery = before^T dout, dkey =
// dafter^T delta + before^T dfound.
template <class T>
CARNOT_INLINE void delta_row_backward(const DeltaStep<T>& step, const DeltaColumnGradients<T>& columns, int d,
                                      T* dstate, Vector<T>& dquery, Vector<T>& dkey, Vector<T>& ddecay) {
  const T query = step.query[d], key = step.key[d];
  Vector<T> query_sum{}, key_sum{};
  for (int column = 0; column < kDeltaColumns<T>; column += kLanes<T>) {
    const int place = d * kDeltaColumns<T> + column;
    const Vector<T> before = load(step.before + place), dafter = load(dstate + place);
    const Vector<T> dout = load(columns.dout + column);
    query_sum += before * dout;
    key_sum += dafter * load(columns.delta + column);
    key_sum += before * load(columns.dfound + column);
    Vector<T> ddecayed = dafter + query * dout;
    ddecayed += key * load(columns.drecalled + column);
    ddecay += before * ddecayed;
    store(dstate + place, step.decay * ddecayed);
  }
  dquery = query_sum;
  dkey = key_sum;
}

template <class T>
void delta_step_backward(const DeltaStep<T>& in, const T* residual, const T* dout, T* dstate, T* dvalue,
                         const DeltaStepSums<T>& sums) {
  constexpr int kL = kLanes<T>;
  static_assert(kDeltaPadding % kL == 0);
  const DeltaStep<T> step = in;
  DeltaColumnGradients<T> columns;
  const T written = delta_column_gradients(step, residual, dout, dstate, dvalue, sums.beta, columns);
  Vector<T> ddecay{};
  for (int first = 0; first < step.dim; first += kL) {
    Vector<T> dquery[kL] = {}, dkey[kL] = {};
    for (int i = 0; i < kL && first + i < step.dim; ++i)
      delta_row_backward(step, columns, first + i, dstate, dquery[i], dkey[i], ddecay);
    // after = decay before + key delta^T: the second part's share of dquery, and what dout adds to dkey.
    const Vector<T> from_state = step.decay * lane_sums<T>(dquery), from_step = written * load(step.key + first);
    store(sums.query + first, load(sums.query + first) + from_state + from_step);
    store(sums.key + first, load(sums.key + first) + lane_sums<T>(dkey) + written * load(step.query + first));
  }
  *sums.decay += lane_sum<T>(ddecay);
}

}  // namespace
}  // namespace carnot::kernel
