#include "carnot/studies/correlation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/studies/distribution.h"

namespace carnot {
namespace {

constexpr int kResamples = 1000;

/// Sums over pairs, from which their correlation follows.
struct Moments {
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  void add(double a, double b) { add({.n = 1, .x = a, .y = b, .xx = a * a, .yy = b * b, .xy = a * b}); }
  void add(const Moments& more) {
    n += more.n;
    x += more.x;
    y += more.y;
    xx += more.xx;
    yy += more.yy;
    xy += more.xy;
  }
  /// None if a side is constant.
  std::optional<double> pearson() const {
    const double a = xx - x * x / n, b = yy - y * y / n, tiny = 1e-12;
    if (!(a > tiny * xx) || !(b > tiny * yy)) return std::nullopt;
    return (xy - x * y / n) / std::sqrt(a * b);
  }
};

/// The moments of each cluster.
std::vector<Moments> moments_of(std::span<const double> x, std::span<const double> y, std::span<const int> clusters) {
  std::map<int, Moments> by_cluster;
  for (std::size_t i = 0; i < x.size(); ++i)
    by_cluster[clusters.empty() ? static_cast<int>(i) : clusters[i]].add(x[i], y[i]);
  std::vector<Moments> all;
  for (const auto& [cluster, moments] : by_cluster) all.push_back(moments);
  return all;
}

std::optional<Interval> resampled_interval(const std::vector<Moments>& clusters, std::uint64_t seed) {
  if (clusters.size() < 3) return std::nullopt;
  RandomStream random(seed);
  std::vector<double> found;
  for (int r = 0; r < kResamples; ++r) {
    Moments sum;
    for (std::size_t i = 0; i < clusters.size(); ++i) sum.add(random.pick(clusters));
    if (const auto pearson = sum.pearson()) found.push_back(*pearson);
  }
  if (found.size() < kResamples / 2) return std::nullopt;
  return Interval{.low = quantile(found, 0.025), .high = quantile(found, 0.975)};
}

}  // namespace

std::optional<double> pearson(std::span<const double> x, std::span<const double> y) {
  CARNOT_CHECK_EQ(x.size(), y.size());
  if (x.size() < 2 || all_equal(x) || all_equal(y)) return std::nullopt;
  const double mean_x = mean(x), mean_y = mean(y);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  const double scale = std::sqrt(xx) * std::sqrt(yy);
  if (!(scale > 0)) return std::nullopt;
  return std::clamp(xy / scale, -1.0, 1.0);
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = (static_cast<double>(begin + 1) + static_cast<double>(end)) / 2;
    for (std::size_t i = begin; i < end; ++i) out[order[i]] = shared;
    begin = end;
  }
  return out;
}

std::optional<double> spearman(std::span<const double> x, std::span<const double> y) {
  return pearson(ranks(x), ranks(y));
}

Correlation resampled_pearson(std::span<const double> x, std::span<const double> y, std::span<const int> clusters,
                              std::uint64_t seed) {
  if (!clusters.empty()) CARNOT_CHECK_EQ(x.size(), clusters.size());
  Correlation out{.value = pearson(x, y), .pairs = x.size()};
  if (out.value) out.interval = resampled_interval(moments_of(x, y, clusters), seed);
  return out;
}

Correlation resampled_spearman(std::span<const double> x, std::span<const double> y, std::span<const int> clusters,
                               std::uint64_t seed) {
  return resampled_pearson(ranks(x), ranks(y), clusters, seed);
}

std::int64_t equal_signs(std::span<const double> x, std::span<const double> y) {
  CARNOT_CHECK_EQ(x.size(), y.size());
  std::int64_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) count += (x[i] > 0) == (y[i] > 0) ? 1 : 0;
  return count;
}

std::string correlation_text(const Correlation& correlation) {
  std::array<char, 64> text{};
  if (!correlation.value)
    std::snprintf(text.data(), text.size(), "none (constant or too few)");
  else if (!correlation.interval)
    std::snprintf(text.data(), text.size(), "%+.3f", *correlation.value);
  else
    std::snprintf(text.data(), text.size(), "%+.3f [%+.2f, %+.2f]", *correlation.value, correlation.interval->low,
                  correlation.interval->high);
  return std::string(text.data()) + ", n = " + std::to_string(correlation.pairs);
}

}  // namespace carnot
