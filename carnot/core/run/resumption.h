// run/resumption.h -- from which checkpoint a run continues, and what becomes of the others.
#pragma once

#include <filesystem>
#include <optional>

#include "carnot/core/base/result.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "carnot/core/train/options.h"

namespace carnot {

/// The checkpoint to resume from: the one that `resume` names, or with auto the latest in `checkpoints` that is whole;
/// none to start. Repairs `checkpoints` first. A checkpoint that is named must be the latest whole one of the folder,
/// if that has any: the run would write over the others.
Result<std::optional<FoundCheckpoint>> checkpoint_to_resume(const RunOptions& run,
                                                            const std::filesystem::path& checkpoints);

/// Makes the folder's checkpoints those of a run that resumes from `checkpoint`, if that is one of them (go_on_from).
Status settle_checkpoints(const std::filesystem::path& checkpoints, const std::optional<FoundCheckpoint>& checkpoint,
                          const TrainOptions& options);

/// Whether the checkpoint is one of `checkpoints`.
bool lies_in(const std::filesystem::path& checkpoint, const std::filesystem::path& checkpoints);

}  // namespace carnot
