#include "carnot/studies/gradient_quality.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/studies/distribution.h"

namespace carnot {
namespace {

constexpr int kSplits = 200;
constexpr double kWantedCosine = 0.5;

using Numbers = std::vector<double>;

double product(const Numbers& a, const Numbers& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// Sums of a method's gradients by task, so that means over tasks are quick.
struct TaskSums {
  std::vector<Numbers> sums{};
  std::vector<double> counts{};

  TaskSums(const MethodGradients& method, std::span<const int> tasks) {
    std::map<int, std::size_t> numbers;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Numbers& one = method.by_trajectory[i];
      const auto [found, is_new] = numbers.try_emplace(tasks[i], sums.size());
      if (is_new) {
        sums.emplace_back(one.size(), 0.0);
        counts.push_back(0);
      }
      for (std::size_t d = 0; d < one.size(); ++d) sums[found->second][d] += one[d];
      counts[found->second] += 1;
    }
  }

  Numbers mean(std::span<const std::size_t> chosen) const {
    Numbers out(sums.front().size(), 0.0);
    double count = 0;
    for (const std::size_t task : chosen) {
      for (std::size_t d = 0; d < out.size(); ++d) out[d] += sums[task][d];
      count += counts[task];
    }
    for (double& x : out) x /= count;
    return out;
  }
};

/// Products of the means over two disjoint halves of the tasks.
struct HalfProducts {
  double method_oracle = 0, method_method = 0, oracle_oracle = 0;
  std::optional<double> cosine{};
};

HalfProducts half_products(const TaskSums& method, const TaskSums& oracle, std::span<const std::size_t> first,
                           std::span<const std::size_t> second) {
  const Numbers m[] = {method.mean(first), method.mean(second)}, o[] = {oracle.mean(first), oracle.mean(second)};
  HalfProducts out{.method_oracle = (product(m[0], o[1]) + product(m[1], o[0])) / 2,
                   .method_method = product(m[0], m[1]),
                   .oracle_oracle = product(o[0], o[1])};
  const double lengths[] = {std::sqrt(product(m[0], m[0]) * product(o[1], o[1])),
                            std::sqrt(product(m[1], m[1]) * product(o[0], o[0]))};
  if (lengths[0] > 0 && lengths[1] > 0)
    out.cosine = (product(m[0], o[1]) / lengths[0] + product(m[1], o[0]) / lengths[1]) / 2;
  return out;
}

/// The trace of the covariance of one trajectory's gradient, and the squared length of the mean.
std::pair<double, double> spread_of(const MethodGradients& method) {
  const auto n = static_cast<double>(method.by_trajectory.size());
  Numbers mean(method.by_trajectory.front().size(), 0.0);
  double squares = 0;
  for (const Numbers& one : method.by_trajectory) {
    squares += product(one, one);
    for (std::size_t d = 0; d < one.size(); ++d) mean[d] += one[d] / n;
  }
  const double length = product(mean, mean);
  return {n > 1 ? std::max(0.0, (squares - n * length) / (n - 1)) : 0, length};
}

std::vector<std::size_t> drawn_from(std::span<const std::size_t> tasks, RandomStream& random) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < tasks.size(); ++i) out.push_back(random.pick(tasks));
  return out;
}

}  // namespace

GradientQuality gradient_quality(const MethodGradients& method, const MethodGradients& oracle,
                                 std::span<const int> tasks, std::uint64_t seed) {
  CARNOT_CHECK_EQ(method.by_trajectory.size(), tasks.size());
  CARNOT_CHECK_EQ(oracle.by_trajectory.size(), tasks.size());
  GradientQuality out;
  if (tasks.empty()) return out;
  const auto [trace, length] = spread_of(method);
  if (trace > 0) out.signal_to_noise = length / (trace / static_cast<double>(tasks.size()));
  const TaskSums ours(method, tasks), theirs(oracle, tasks);
  if (ours.sums.size() < 4) return out;

  std::vector<std::size_t> order(ours.sums.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  RandomStream random(seed);
  std::vector<double> cosines, resampled;
  HalfProducts mean;
  for (int split = 0; split < kSplits; ++split) {
    random.shuffle(order);
    const std::span<const std::size_t> all(order);
    const auto first = all.first(order.size() / 2), second = all.subspan(order.size() / 2);
    const HalfProducts found = half_products(ours, theirs, first, second);
    mean.method_oracle += found.method_oracle / kSplits;
    mean.method_method += found.method_method / kSplits;
    mean.oracle_oracle += found.oracle_oracle / kSplits;
    if (found.cosine) cosines.push_back(*found.cosine);
    const HalfProducts again = half_products(ours, theirs, drawn_from(first, random), drawn_from(second, random));
    if (again.cosine) resampled.push_back(*again.cosine);
  }
  if (cosines.size() < kSplits || resampled.size() < kSplits / 2) return out;
  out.cosine = carnot::mean(cosines);
  out.interval = Interval{.low = quantile(resampled, 0.025), .high = quantile(resampled, 0.975)};
  // cosine(n) = <m, o> / (|o| sqrt(|m|^2 + trace / n)), solved for n.
  const double wanted = kWantedCosine * kWantedCosine;
  const double room = mean.method_oracle * mean.method_oracle / (wanted * mean.oracle_oracle) - mean.method_method;
  if (mean.method_oracle > 0 && mean.oracle_oracle > 0 && room > 0) out.trajectories_needed = trace / room;
  return out;
}

void add_gradients(std::span<const MethodGradients> methods, std::span<const int> tasks, std::uint64_t seed,
                   AnalysisReport& report) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  Table table{.name = "gradients",
              .columns = {"method", "signal to noise", "cosine", "low", "high", "trajectories for cosine 0.5"}};
  for (const MethodGradients& method : methods) {
    const GradientQuality quality = gradient_quality(method, methods.front(), tasks, seed);
    table.add(method.name, quality.signal_to_noise.value_or(kUnknown), quality.cosine.value_or(kUnknown),
              quality.interval ? quality.interval->low : kUnknown, quality.interval ? quality.interval->high : kUnknown,
              quality.trajectories_needed.value_or(kUnknown));
    std::string words = "cosine none";
    if (quality.cosine)
      words = "cosine " + number_text(*quality.cosine) + " [" + number_text(quality.interval->low) + ", " +
              number_text(quality.interval->high) + "]";
    if (quality.signal_to_noise) words += ", signal to noise " + number_text(*quality.signal_to_noise);
    words += quality.trajectories_needed
                 ? ", " + number_text(std::ceil(*quality.trajectories_needed)) + " trajectories for 0.5"
                 : ", never 0.5";
    report.find(method.name + ": gradient against the oracle's on other tasks", "-", words);
  }
  report.tables.push_back(std::move(table));
  report.figures.push_back({.title = "Each method's gradient against the oracle's",
                            .caption =
                                "Cosine of mean gradients over disjoint halves of the tasks; 95 % intervals over "
                                "bootstrapped tasks. The oracle's own shows what noise leaves.",
                            .table = "gradients",
                            .draw = Draw::Intervals,
                            .x = "method",
                            .y = {"cosine"},
                            .low = "low",
                            .high = "high",
                            .y_axis = {.label = "cosine", .low = -1, .high = 1},
                            .mark = 0});
}

}  // namespace carnot
