#include "reference/attention.h"

#include <algorithm>
#include <cmath>

namespace carnot::reference {
namespace {

std::vector<double> head_at(const AttentionInput& in, int position, int index) {
  const int width = (in.heads + 2 * in.kv_heads) * in.dim;
  const auto first = in.qkv.begin() + position * width + index * in.dim;
  return {first, first + in.dim};
}

std::vector<double> normed(std::vector<double> x, const std::vector<double>& weight, double epsilon) {
  if (weight.empty()) return x;
  double squares = 0;
  for (double v : x) squares += v * v;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= weight[i] / std::sqrt(squares / double(x.size()) + epsilon);
  return x;
}

std::vector<double> rotated(const AttentionInput& in, const std::vector<double>& x, int position) {
  const std::size_t size = x.size() - static_cast<std::size_t>(in.unrotated), half = size / 2;
  std::vector<double> y = x;
  for (std::size_t i = 0; i < half; ++i) {
    const double angle = position * std::pow(in.rope_theta, -2.0 * double(i) / double(size));
    y[i] = x[i] * std::cos(angle) - x[half + i] * std::sin(angle);
    y[half + i] = x[half + i] * std::cos(angle) + x[i] * std::sin(angle);
  }
  return y;
}

}  // namespace

std::vector<double> attention(const AttentionInput& in) {
  std::vector<double> out;
  for (int p = 0; p < in.length; ++p) {
    for (int h = 0; h < in.heads; ++h) {
      const int kv = h / (in.heads / in.kv_heads);
      const auto query = rotated(in, normed(head_at(in, p, h), in.query_norm, in.norm_epsilon), p);
      const int first = in.window > 0 ? std::max(0, p + 1 - in.window) : 0;
      std::vector<double> weight;
      double total = 0;
      for (int j = first; j <= p; ++j) {
        const auto key = rotated(in, normed(head_at(in, j, in.heads + kv), in.key_norm, in.norm_epsilon), j);
        double score = 0;
        for (std::size_t d = 0; d < key.size(); ++d) score += query[d] * key[d];
        if (!in.query_scale.empty()) score *= in.query_scale[static_cast<std::size_t>(p)];
        weight.push_back(std::exp(score / std::sqrt(double(in.dim))));
        total += weight.back();
      }
      std::vector<double> mixed(in.dim, 0.0);
      for (int j = first; j <= p; ++j) {
        const auto value = head_at(in, j, in.heads + in.kv_heads + kv);
        for (std::size_t d = 0; d < mixed.size(); ++d)
          mixed[d] += weight[static_cast<std::size_t>(j - first)] / total * value[d];
      }
      out.insert(out.end(), mixed.begin(), mixed.end());
    }
  }
  return out;
}

}  // namespace carnot::reference
