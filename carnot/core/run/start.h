// run/start.h -- carries out a run's plan: from a recipe to a model and a folder, on all ranks together.
//
// What can be refused is refused before anything is written.
#pragma once

#include <cstdint>
#include <optional>

#include "carnot/core/base/result.h"
#include "carnot/core/rows/demonstration_files.h"
#include "carnot/core/run/folder_lock.h"
#include "carnot/core/run/run.h"
#include "carnot/core/run/start_plan.h"
#include "carnot/core/run/tracking.h"
#include "carnot/core/train/model_bundle.h"

namespace carnot {

/// What a run begins with.
struct StartedRun {
  std::optional<FolderLock> lock{};  ///< rank 0's, for all, to the end of the run
  StartPlan plan{};
  ModelBundle bundle{};
  SplitDemonstrations demonstrations{};  ///< the rows of sft.source, where SFT is ahead
  std::int64_t predicted_memory = 0;     ///< bytes at the peak
  Tracking tracking{};                   ///< rank 0's, where the recipe has a tracker
};

/// Refuses what does not fit, in settings, rows or memory, before any weights are loaded. The folder is opened once all
/// ranks are known to be ready: a refused recipe leaves none.
Result<StartedRun> start_run(Recipe& recipe, MemoryStage stage, const RunControl& control);

/// A stage with its own folder within the run's.
struct StartedStage {
  std::optional<FolderLock> lock{};
  StartPlan plan{};
};

/// Takes and opens the folder, and finds the stage's checkpoint to continue from.
Result<StartedStage> start_stage(const Recipe& recipe, const RunFolder& folder, Collectives& group);

/// Makes the run's folder again, with the configuration and nothing else, where it was deleted. Called on rank 0.
Status restore_folder(Recipe& recipe);

/// The rows of sft.source; none where it names no file, or no SFT is ahead.
Result<SplitDemonstrations> sft_rows(const Recipe& recipe, const ModelBundle& bundle, MemoryStage stage);

}  // namespace carnot
