#include "carnot/core/train/mismatch_metrics.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/loss/ratio.h"

namespace carnot {
namespace {

double bounded(double log_ratio) { return std::clamp(log_ratio, -kMaxLogRatio, kMaxLogRatio); }

struct Sums {
  double tokens = 0, trajectories = 0;
  double log_ratio = 0, k3 = 0, token_square = 0;
  double trajectory_square = 0;  ///< of the product of a trajectory's ratios
  double weight = 0, weight_square = 0;

  void add(const Trajectory& trajectory, double cap) {
    const std::vector<double> old = trajectory.column(Column::LogProbOld);
    const std::vector<double> rollout = trajectory.column(Column::LogProbRollout);
    const std::vector<bool> sampled = trajectory.sampled();
    double total = 0;
    for (std::size_t t = 0; t < sampled.size(); ++t) {
      const double difference = old[t] - rollout[t];
      if (!sampled[t] || std::isnan(difference)) continue;
      total += difference;
      add_token(bounded(difference), cap);
    }
    trajectories += 1;
    trajectory_square += std::exp(2 * bounded(total));
  }

  void add_token(double x, double cap) {
    const double ratio = std::exp(x), importance = cap > 0 ? std::min(ratio, cap) : ratio;
    tokens += 1;
    log_ratio += x;
    k3 += ratio - 1 - x;
    token_square += ratio * ratio;
    weight += importance;
    weight_square += importance * importance;
  }
};

}  // namespace

std::map<std::string, double> mismatch_metrics(std::span<const Trajectory> trajectories, double importance_cap) {
  Sums sums;
  for (const Trajectory& trajectory : trajectories) {
    const Columns& columns = trajectory.tree->columns;
    if (trajectory.leaf().is_included() && columns.has(Column::LogProbOld) && columns.has(Column::LogProbRollout))
      sums.add(trajectory, importance_cap);
  }
  if (sums.tokens == 0) return {};
  std::map<std::string, double> metrics{
      {"rollout_corr/kl", -sums.log_ratio / sums.tokens},
      {"rollout_corr/k3_kl", sums.k3 / sums.tokens},
      {"rollout_corr/chi2_token", sums.token_square / sums.tokens - 1},
      {"rollout_corr/chi2_seq", sums.trajectory_square / sums.trajectories - 1},
      {"rollout_corr/rollout_is_eff_sample_size", sums.weight * sums.weight / (sums.tokens * sums.weight_square)}};
  if (importance_cap > 0) metrics["rollout_corr/rollout_is_mean"] = sums.weight / sums.tokens;
  return metrics;
}

}  // namespace carnot
