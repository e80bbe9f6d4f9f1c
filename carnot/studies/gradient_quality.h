// studies/gradient_quality.h -- how much of a method's gradient is signal, and how well it points where the oracle's
// points. Numbers only: gradients come as vectors, one per trajectory (studies/gradient_sketch.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/statistics.h"
#include "carnot/studies/analysis.h"

namespace carnot {

/// One method's gradients of the same trajectories.
struct MethodGradients {
  std::string name{};
  std::vector<std::vector<double>> by_trajectory{};
};

struct GradientQuality {
  /// |mean|^2 / (trace of the covariance / n): 1 on average for noise without a mean. None without spread.
  std::optional<double> signal_to_noise{};
  /// Of the method's mean over half of the tasks with the oracle's over the other half: mean over random halves, and
  /// percentiles over bootstrapped tasks. None with fewer than four tasks, or where a mean is 0.
  std::optional<double> cosine{};
  std::optional<Interval> interval{};
  /// How many trajectories' mean gradient has a cosine of 0.5 with the oracle's expected one; absent if no number
  /// reaches it by these estimates: products of means over disjoint halves, which noise does not lengthen.
  std::optional<double> trajectories_needed{};
};

/// `tasks`: of each trajectory. REQUIRES: equal numbers of trajectories, equal lengths.
GradientQuality gradient_quality(const MethodGradients& method, const MethodGradients& oracle,
                                 std::span<const int> tasks, std::uint64_t seed);

/// Adds the table "gradients", its figure and one finding per method; the first of `methods` is the oracle.
void add_gradients(std::span<const MethodGradients> methods, std::span<const int> tasks, std::uint64_t seed,
                   AnalysisReport& report);

}  // namespace carnot
