// run/start.h -- what a run settles before its first stage: its folder, what it resumes from, memory, the model.
//
// What can be refused is refused before anything is written. All ranks of a run make these calls together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "carnot/core/base/result.h"
#include "carnot/core/collectives/collectives.h"
#include "carnot/core/rank/processors.h"
#include "carnot/core/rows/demonstration_files.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "carnot/core/run/folder_lock.h"
#include "carnot/core/run/memory_budget.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

Resume resume_of(const Recipe& recipe);

/// What a run holds from its beginning to its end.
struct Hold {
  std::optional<FolderLock> folder;  ///< rank 0's, for all
  MachineShare share;
};

/// Refuses what can be refused first, then takes the folder: what is found there from here on stays so.
Result<Hold> take_hold(const Recipe& recipe, MemoryStage stage, Collectives& group);

/// The checkpoint that rank 0 finds, on all ranks (checkpoint_to_resume()).
Result<std::optional<FoundCheckpoint>> common_checkpoint(const RunOptions& run,
                                                         const std::filesystem::path& checkpoints, Collectives& group);

/// Filled once everything else is known to be right: a refused recipe leaves no folder.
Result<RunFolder> open_folder(Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint, Collectives& group);

/// Makes the folder again, with the configuration and nothing else, where it was deleted.
Status restore_folder(Recipe& recipe, Collectives& group);

/// So many ranks make the run, some of them on this machine.
struct Ranks {
  int all = 1;
  int here = 1;
};

/// The memory that each rank of the run is predicted to take; refused if that is more than there is.
Result<std::int64_t> predict_memory(const Recipe& recipe, const ModelConfig& config, MemoryStage stage,
                                    const Ranks& ranks);

/// What a run begins with.
struct RunStart {
  ModelBundle bundle;
  SplitDemonstrations demonstrations{};  ///< the rows of sft.source, where SFT is ahead
  std::int64_t predicted_memory = 0;
};

/// The rows of sft.source; none where it names no file, or no SFT is ahead.
Result<SplitDemonstrations> sft_rows(const Recipe& recipe, const ModelBundle& bundle, MemoryStage stage);

/// Refuses what does not fit, in settings, rows or memory, before any weights are there.
Result<RunStart> start(Recipe& recipe, const std::optional<FoundCheckpoint>& checkpoint, MemoryStage stage,
                       Collectives& group, const MachineShare& share);

}  // namespace carnot
