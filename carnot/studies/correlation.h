// studies/correlation.h -- how two measurements go together: Pearson, Spearman with ties, and their intervals.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/statistics.h"

namespace carnot {

/// None if there are fewer than two pairs or one side is constant. REQUIRES: equal sizes.
std::optional<double> pearson(std::span<const double> x, std::span<const double> y);

/// Ranks from 1; values that are equal share the mean of their ranks.
std::vector<double> ranks(std::span<const double> values);

/// Pearson of the ranks.
std::optional<double> spearman(std::span<const double> x, std::span<const double> y);

struct Correlation {
  std::optional<double> value{};
  /// 95 %: percentiles over a thousand resamples of clusters, whose pairs are not independent. None of fewer than three
  /// clusters, or where most resamples have a constant side.
  std::optional<Interval> interval{};
  std::size_t pairs = 0;
};

/// With the cluster of each pair; without clusters, each pair is its own. REQUIRES: equal sizes.
Correlation resampled_pearson(std::span<const double> x, std::span<const double> y, std::span<const int> clusters = {},
                              std::uint64_t seed = 0);
/// Resamples keep the ranks of the whole sample.
Correlation resampled_spearman(std::span<const double> x, std::span<const double> y, std::span<const int> clusters = {},
                               std::uint64_t seed = 0);

/// Pairs of which both are above 0, or neither. REQUIRES: equal sizes.
std::int64_t equal_signs(std::span<const double> x, std::span<const double> y);

/// "+0.537 [+0.41, +0.64], n = 128", or without an interval.
std::string correlation_text(const Correlation& correlation);

}  // namespace carnot
