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

/// 95 % interval of a correlation over `pairs` pairs by Fisher's transformation; [-1, 1] of fewer than four.
Interval correlation_interval(double correlation, std::size_t pairs);

/// Pairs of which both are above 0, or neither. REQUIRES: equal sizes.
std::int64_t equal_signs(std::span<const double> x, std::span<const double> y);

/// "+0.537 [+0.41, +0.64], n = 128"; "none (constant)" without a correlation.
std::string correlation_text(const std::optional<double>& correlation, std::size_t pairs);

}  // namespace carnot
