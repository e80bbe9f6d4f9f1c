#include "reference/gated_delta.h"

#include <cmath>
#include <cstddef>

namespace carnot::reference {
namespace {

using Numbers = std::vector<double>;
using Matrix = std::vector<Numbers>;

double inner(const Numbers& x, const Numbers& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

/// One value head: where its numbers are, and its steps.
struct Head {
  const DeltaRuleInput& in;
  int head;

  int width() const { return 2 * in.key_heads * in.key_dim + in.value_heads * in.value_dim; }
  int key_head() const { return head / (in.value_heads / in.key_heads); }
  int query_at(int t) const { return t * width() + key_head() * in.key_dim; }
  int key_at(int t) const { return query_at(t) + in.key_heads * in.key_dim; }
  int value_at(int t) const { return t * width() + 2 * in.key_heads * in.key_dim + head * in.value_dim; }
  int gate_at(int t) const { return t * in.value_heads + head; }
  int out_at(int t) const { return gate_at(t) * in.value_dim; }

  static Numbers part(const Numbers& all, int at, int count) { return {all.begin() + at, all.begin() + at + count}; }
  double length_of(int at) const {
    const Numbers x = part(in.qkv, at, in.key_dim);
    return std::sqrt(inner(x, x) + in.norm_epsilon);
  }
  Numbers unit(int at, double scale) const {
    Numbers x = part(in.qkv, at, in.key_dim);
    const double length = length_of(at);
    for (double& number : x) number *= scale / length;
    return x;
  }
  double query_scale() const { return 1 / std::sqrt(static_cast<double>(in.key_dim)); }
  Numbers query(int t) const { return unit(query_at(t), query_scale()); }
  Numbers key(int t) const { return unit(key_at(t), 1); }
  double step(int t) const { return in.a[gate_at(t)] + in.step_bias[head]; }
  double decay(int t) const { return std::exp(-std::exp(in.log_rate[head]) * std::log1p(std::exp(step(t)))); }
  double beta(int t) const { return 1 / (1 + std::exp(-in.b[gate_at(t)])); }

  /// value - decay state^T key
  Numbers residual(int t, const Matrix& before) const {
    Numbers rest = part(in.qkv, value_at(t), in.value_dim);
    const Numbers k = key(t);
    for (int d = 0; d < in.key_dim; ++d)
      for (int v = 0; v < in.value_dim; ++v) rest[v] -= decay(t) * before[d][v] * k[d];
    return rest;
  }
  Matrix after(int t, const Matrix& before) const {
    Matrix state = before;
    const Numbers k = key(t), rest = residual(t, before);
    for (int d = 0; d < in.key_dim; ++d)
      for (int v = 0; v < in.value_dim; ++v) state[d][v] = decay(t) * before[d][v] + k[d] * beta(t) * rest[v];
    return state;
  }
  /// Before each position, and after the last.
  std::vector<Matrix> states() const {
    std::vector<Matrix> all{Matrix(in.key_dim, Numbers(in.value_dim, 0.0))};
    for (int t = 0; t < in.length; ++t) all.push_back(after(t, all.back()));
    return all;
  }

  void unit_gradient(const Numbers& dunit, int at, double scale, Numbers& dqkv) const {
    const Numbers x = part(in.qkv, at, in.key_dim);
    const double length = length_of(at), along = inner(dunit, x) / (length * length);
    for (int d = 0; d < in.key_dim; ++d) dqkv[at + d] += scale / length * (dunit[d] - x[d] * along);
  }
  void step_gradient(int t, const Matrix& before, const Numbers& dout, Matrix& dstate, DeltaRuleGradients& g) const;
};

/// `dstate`: of the state after position t, without what `out` reads of it; replaced by that of the state before.
void Head::step_gradient(int t, const Matrix& before, const Numbers& dout, Matrix& dstate,
                         DeltaRuleGradients& g) const {
  const Numbers q = query(t), k = key(t), rest = residual(t, before);
  const Matrix state = after(t, before);
  Numbers dq(in.key_dim, 0.0), dk(in.key_dim, 0.0), drest(in.value_dim, 0.0);
  double dbeta = 0, ddecay = 0;
  for (int d = 0; d < in.key_dim; ++d) {
    for (int v = 0; v < in.value_dim; ++v) {
      dq[d] += state[d][v] * dout[v];
      dstate[d][v] += q[d] * dout[v];
      dk[d] += dstate[d][v] * beta(t) * rest[v];
      dbeta += dstate[d][v] * k[d] * rest[v];
      drest[v] += dstate[d][v] * k[d] * beta(t);
    }
  }
  for (int d = 0; d < in.key_dim; ++d) {
    for (int v = 0; v < in.value_dim; ++v) {
      dk[d] -= drest[v] * decay(t) * before[d][v];
      const double ddecayed = dstate[d][v] - drest[v] * k[d];
      ddecay += ddecayed * before[d][v];
      dstate[d][v] = ddecayed * decay(t);
    }
  }
  for (int v = 0; v < in.value_dim; ++v) g.qkv[value_at(t) + v] += drest[v];
  unit_gradient(dq, query_at(t), query_scale(), g.qkv);
  unit_gradient(dk, key_at(t), 1, g.qkv);
  const double rate = std::exp(in.log_rate[head]), dlog_decay = ddecay * decay(t);
  const double da = -dlog_decay * rate / (1 + std::exp(-step(t)));
  g.b[gate_at(t)] += dbeta * beta(t) * (1 - beta(t));
  g.a[gate_at(t)] += da;
  g.step_bias[head] += da;
  g.log_rate[head] -= dlog_decay * rate * std::log1p(std::exp(step(t)));
}

}  // namespace

DeltaRuleResult gated_delta(const DeltaRuleInput& in) {
  DeltaRuleResult result;
  result.out.resize(static_cast<std::size_t>(in.length * in.value_heads * in.value_dim));
  for (int h = 0; h < in.value_heads; ++h) {
    const Head head{in, h};
    const std::vector<Matrix> states = head.states();
    for (int t = 0; t < in.length; ++t) {
      const Numbers q = head.query(t);
      for (int d = 0; d < in.key_dim; ++d)
        for (int v = 0; v < in.value_dim; ++v) result.out[head.out_at(t) + v] += q[d] * states[t + 1][d][v];
    }
    for (const Numbers& row : states.back()) result.state.insert(result.state.end(), row.begin(), row.end());
  }
  return result;
}

DeltaRuleGradients gated_delta_gradients(const DeltaRuleInput& in, const std::vector<double>& dout) {
  DeltaRuleGradients g{.qkv = Numbers(in.qkv.size(), 0.0),
                       .a = Numbers(in.a.size(), 0.0),
                       .b = Numbers(in.b.size(), 0.0),
                       .log_rate = Numbers(in.log_rate.size(), 0.0),
                       .step_bias = Numbers(in.step_bias.size(), 0.0)};
  for (int h = 0; h < in.value_heads; ++h) {
    const Head head{in, h};
    const std::vector<Matrix> states = head.states();
    Matrix dstate(in.key_dim, Numbers(in.value_dim, 0.0));
    for (int t = in.length; t-- > 0;)
      head.step_gradient(t, states[t], Head::part(dout, head.out_at(t), in.value_dim), dstate, g);
  }
  return g;
}

}  // namespace carnot::reference
