#include "carnot/studies/correlation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>

#include "carnot/core/base/check.h"

namespace carnot {

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

Interval correlation_interval(double correlation, std::size_t pairs) {
  if (pairs < 4) return {-1, 1};
  constexpr double kNormal = 1.959964;
  const double half = kNormal / std::sqrt(static_cast<double>(pairs) - 3);
  const double centre = std::atanh(correlation);
  return {std::tanh(centre - half), std::tanh(centre + half)};
}

std::int64_t equal_signs(std::span<const double> x, std::span<const double> y) {
  CARNOT_CHECK_EQ(x.size(), y.size());
  std::int64_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) count += (x[i] > 0) == (y[i] > 0) ? 1 : 0;
  return count;
}

std::string correlation_text(const std::optional<double>& correlation, std::size_t pairs) {
  std::array<char, 96> text{};
  if (!correlation) {
    std::snprintf(text.data(), text.size(), "none (constant or too few), n = %zu", pairs);
  } else {
    const Interval interval = correlation_interval(*correlation, pairs);
    std::snprintf(text.data(), text.size(), "%+.3f [%+.2f, %+.2f], n = %zu", *correlation, interval.low, interval.high,
                  pairs);
  }
  return text.data();
}

}  // namespace carnot
