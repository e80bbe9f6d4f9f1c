// studies/comparison_results.h -- what the runs of a comparison measured, read from their folders, and its statistics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/studies/comparison_plan.h"
#include "carnot/studies/estimate.h"
#include "carnot/studies/metric_curves.h"

namespace carnot {

/// One run. An unfinished one has curves as far as it came, and nothing else.
struct ContestRun {
  std::int64_t seed = 0;
  std::string folder{};  ///< below the comparison's
  bool finished = false;
  std::string problem{};  ///< why it failed, where this is known
  double before = 0;      ///< success of the shared start on validation tasks
  double after = 0;       ///< and of this run's policy at its end
  /// The best success of its evaluations, those before and after included, and the step of the first that reached it;
  /// not a number without eval.every.
  double peak = std::numeric_limits<double>::quiet_NaN();
  double peak_step = std::numeric_limits<double>::quiet_NaN();
  double response_length = 0;  ///< of the evaluation after training, as are the next two
  double entropy = 0;
  double turns = 0;
  double steps = 0;                       ///< training steps
  double sampled_tokens = 0;              ///< by all training steps
  double seconds = 0;                     ///< of all training steps; depends on the machine and its load
  std::map<std::string, Curve> curves{};  ///< by metric (docs/metrics.md), of those that comparisons show
};

struct ContestantResult {
  std::string name{};
  std::vector<ContestRun> runs{};  ///< one per seed

  /// A value of every finished run that has it.
  BySeed by_seed(double ContestRun::* value) const;
};

struct Comparison {
  std::string recipe{};
  std::string environment{};
  std::int64_t training_steps = 0;      ///< of a run, at most
  std::int64_t max_sampled_tokens = 0;  ///< with which a run ends earlier; 0: none does
  std::int64_t trajectories = 0;        ///< of one training step, as the recipe asks
  std::int64_t validation_tasks = 0;
  std::int64_t evaluation_samples = 0;
  std::size_t base = 0;
  std::vector<ContestantResult> contestants{};
  std::vector<LeftOut> left_out{};
  std::vector<std::string> notes{};

  Estimate difference(std::size_t contestant, double ContestRun::* value) const;
};

/// Names of the metrics that comparisons show, of training steps.
struct ShownMetrics {
  std::string success{};
  std::string entropy = "actor/entropy";
  std::string response_length = "response_length/mean";
  std::string validation{};  ///< where eval.every is set

  static ShownMetrics in(const std::string& environment, std::int64_t evaluation_samples);
};

/// Failures by run folder.
using RunProblems = std::map<std::string, std::string>;

/// Reads what exists. A run that is not finished, or not begun, is no failure; a file that cannot be read is.
Result<Comparison> read_comparison(const ComparisonPlan& plan, const RunProblems& problems);

}  // namespace carnot
