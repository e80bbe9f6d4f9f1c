// run/stage_files.h -- what a stage writes while it runs: metrics of its steps, and checkpoints behind them.
//
// A checkpoint is due by steps (train.save_every) and by time (train.save_minutes), whichever comes first. All ranks
// make the same calls; rank 0 writes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "carnot/core/base/result.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/run/checkpoint.h"
#include "carnot/core/run/metrics_writer.h"
#include "carnot/core/run/stages.h"

namespace carnot {

/// Why a stage is no success that computed gradients and updated nothing.
inline constexpr const char* kAllSkipped =
    "no update changed the weights; all were left out, since their gradients are not finite. The last checkpoint is "
    "written";

inline bool is_due(std::int64_t step, std::int64_t every) { return every > 0 && step % every == 0; }

class StageFiles {
 public:
  struct Options {
    RunFolder folder{};
    std::int64_t resume_step = 0;         ///< metrics of later steps are dropped: these come again
    std::optional<std::int64_t> saved{};  ///< the step whose checkpoint is there already
    std::int64_t save_every = 0;
    /// Called on rank 0 before a checkpoint is written: makes the run's folder again where it was deleted.
    std::function<Status()> restore = []() -> Status { return Done{}; };
    std::function<bool(std::int64_t step)> is_logged = [](std::int64_t) { return true; };
  };

  /// `run` must outlive it.
  static Result<StageFiles> open(const Run& run, const Options& options);

  const Options& options() const { return options_; }

  Status write_metrics(std::int64_t step, const StepMetrics& metrics);

  /// Whether a checkpoint is due after `step`; the same on all ranks.
  bool save_is_due(std::int64_t step) const;

  /// Writes the checkpoint of `step`, unless it is there. One whose metrics wait for an evaluation
  /// (CheckpointParts::unwritten_metrics) is written again once they do not.
  Status save(std::int64_t step, const CheckpointParts& parts);

 private:
  StageFiles(const Run& run, const Options& options, std::optional<MetricsWriter> writer)
      : run_(&run), options_(options), saved_(options.saved), writer_(std::move(writer)) {}

  const Run* run_;
  Options options_;
  std::optional<std::int64_t> saved_;
  std::optional<MetricsWriter> writer_;  ///< rank 0's
  Stopwatch since_saved_{};
};

}  // namespace carnot
