// train/run_stages.h -- the stages of a run: warm start, evaluation, reinforcement learning, summary.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "carnot/train/progress.h"
#include "carnot/train/report.h"
#include "carnot/train/run.h"
#include "carnot/train/run_folder.h"
#include "carnot/train/trainer.h"
#include "carnot/train/workbench.h"

namespace carnot {

/// What every stage of one run shares.
struct Run {
  Recipe& recipe;
  const RunControl& control;
  RunFolder folder;
  Progress progress;
  std::int64_t predicted_memory = 0;  ///< bytes at the peak

  Run(Recipe& of, const RunControl& with, RunFolder in)
      : recipe(of), control(with), folder(std::move(in)), progress(with.out, {.terminal = with.terminal}) {}
};

/// The checkpoint to go on from: the one that `resume` names, or with auto the latest in `checkpoints`; none to start.
Result<std::optional<std::filesystem::path>> checkpoint_to_resume(const RunOptions& run,
                                                                  const std::filesystem::path& checkpoints);

/// Trains `bench.policy` on demonstrations in `folder`, from its latest checkpoint if there is one and the recipe
/// resumes.
Result<RunEnd> supervised_stage(Run& run, const RunFolder& folder, Workbench& bench);

/// Evaluates and keeps the result in validation/NAME. With `reuse`, a result that is there already is taken instead.
Result<StoredEvaluation> evaluation_stage(Run& run, const std::string& name, Workbench& bench, Engine& engine,
                                          bool reuse);

/// All steps from `first` on.
Result<RunEnd> reinforcement_stage(Run& run, Workbench& bench, Trainer& trainer, std::int64_t first);

/// Table, transcripts, summary.json.
Status summary_stage(Run& run, const Workbench& bench, const StoredEvaluation& before, const StoredEvaluation& after);

}  // namespace carnot
