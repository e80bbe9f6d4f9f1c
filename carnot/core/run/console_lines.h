// run/console_lines.h -- the lines that a run prints while it runs. All numbers are in the run's files.
#pragma once

#include <cstdint>
#include <string>

#include "carnot/core/run/evaluation.h"
#include "carnot/core/run/metrics_writer.h"

namespace carnot {

/// How far a run is, and how much room its lines have.
struct ConsolePlace {
  std::int64_t step = 0;  ///< steps that are complete
  std::int64_t steps = 0;
  int width = 79;  ///< columns that a line may take
};

/// "step  12/130  success  43.2 %  score  0.43  entropy 0.103  length   69    0.7 s": what the step's metrics hold of
/// it, the more important first, as much as fits. The columns of one run's lines are aligned, but groups without signal
/// and truncated responses are shown only if there are any.
std::string step_line(const ConsolePlace& place, const StepMetrics& metrics, const std::string& environment);

/// What went wrong in this many of a run's groups and trajectories, over its steps so far and in the last of them.
class DeadShares {
 public:
  void add(const StepMetrics& metrics);

  /// "Groups without signal (equal rewards): 62.5 % of all, 100.0 % in the last step", and the same of truncated
  /// responses; a line each, empty if there were none.
  std::string lines() const;

 private:
  struct Share {
    double sum = 0, last = 0;
  };
  Share no_signal_{}, truncated_{};
  double steps_ = 0;
};

/// "SFT 1000/1000  loss 0.213  held out 0.305  1:05": losses in nats per token, as the step's metrics have them.
std::string sft_line(const ConsolePlace& place, const StepMetrics& metrics, double seconds);

/// "evaluation before  success 19.0 % [15.5, 23.1]  score 0.205  length 43.3  400 trajectories  0:12"
std::string evaluation_line(const std::string& name, const Evaluation& evaluation, int width);

}  // namespace carnot
