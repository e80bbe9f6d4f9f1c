// studies/run_curves.h -- metrics of runs by training step, by label, and analyses of them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "carnot/studies/analysis.h"
#include "carnot/studies/mean_curve.h"
#include "carnot/studies/run_set.h"

namespace carnot {

/// Of a finished run on validation tasks (summary.json); not a number where it has not ended.
double success_after(const std::filesystem::path& run_folder);

/// One run's metrics.jsonl.
struct RunCurves {
  StudiedRun run{};
  std::map<std::string, Curve> metrics{};  ///< by name (docs/metrics.md)
  double success_after = 0;                ///< success_after()

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

/// An analysis of runs.
class CurveAnalysis : public Analysis {
 public:
  void fields(FieldVisitor& visit) final;
  Result<AnalysisReport> run(const AnalysisInput& input) final;

 protected:
  /// The report without rows and findings.
  virtual AnalysisReport begin() const = 0;
  virtual void add(const std::vector<LabelledRuns>& all, AnalysisReport& report) const = 0;

  int window_ = 5;  ///< of steps that curves are smoothed over
};

}  // namespace carnot
