// study/run_curves.h -- metrics of runs by training step, and their means over runs of one label.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "carnot/chart/plot.h"
#include "carnot/study/comparison_results.h"
#include "carnot/study/metric_curves.h"
#include "carnot/study/run_set.h"

namespace carnot {

/// One run's metrics.jsonl.
struct RunCurves {
  StudiedRun run{};
  std::map<std::string, Curve> metrics{};  ///< by name (docs/metrics.md)
  double success_after = 0;                ///< on validation tasks (summary.json); not a number where it has not ended

  /// The training metric of success.
  std::string success() const { return "env/" + run.environment + "/success"; }
};

/// Every run below `paths` that has trained. Fails if there is none, or a file cannot be read.
Result<std::vector<RunCurves>> read_curves(std::span<const std::filesystem::path> paths);

/// Runs of one label.
struct LabelledRuns {
  std::string label{};
  std::vector<RunCurves> runs{};

  /// Empty curves where a run lacks the metric.
  std::vector<Curve> curves(const std::string& metric) const;
  std::vector<Curve> success_curves() const;

  /// The runs' validation success; of a run that has not ended, its training success over the last tenth of its steps.
  std::vector<double> final_success() const;
};
std::vector<LabelledRuns> by_label(std::vector<RunCurves> runs);

/// Mean of the curve over the steps whose place among them lies in [from, to), 0 <= from < to <= 1; not a number of
/// none.
double mean_between(const Curve& curve, double from, double to);

/// Mean with its band over runs, smoothed over `window` steps.
Series series_of(const std::string& name, const std::vector<Curve>& curves, int window);

}  // namespace carnot
