// run/start_plan.h -- what a run settles before its first stage, as plain data.
//
// Rank 0 resolves the plan from the recipe and the files that it finds, every rank gets it (planned_for_all()), and all
// carry it out alike (run/start.h). Resolving repairs checkpoints and writes nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/collectives/collectives.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "carnot/core/run/memory_budget.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

struct StartPlan {
  RunFolder folder{};
  std::optional<FoundCheckpoint> checkpoint{};  ///< to continue from
  std::filesystem::path recorded{};             ///< the config.yaml to compare the recipe with; empty: none
  int virtual_shards = 0;                       ///< train.virtual_shards (settled_shards())

  std::int64_t step() const { return checkpoint ? checkpoint->step : 0; }
};

Resume resume_of(const RunOptions& run);

/// What can be refused before anything is loaded: settings with which training learns nothing, workers that this build
/// or recipe cannot have, a folder that a run may not write into.
Status check_start(const Recipe& recipe, MemoryStage stage);

/// The plan of a run by this many ranks. REQUIRES: check_start(), and the folder's lock is held, so that what is found
/// stays so.
Result<StartPlan> resolve_start(const Recipe& recipe, MemoryStage stage, int ranks);

/// The checkpoint to resume from: the one that `resume` names, or with auto the latest whole one in `checkpoints`;
/// none to start from the beginning. Repairs `checkpoints` first. A checkpoint that is named must be the latest whole
/// one of the folder, if that has any: the run would overwrite the others.
Result<std::optional<FoundCheckpoint>> checkpoint_to_resume(const RunOptions& run,
                                                            const std::filesystem::path& checkpoints);

/// train.virtual_shards, and where it is 0: as `config` says, the config.yaml of the run that is resumed (1 if it says
/// nothing: one process made it), else one for each rank. Fails if the ranks cannot share so many evenly; a recorded
/// number that they cannot share gives way where resume_changes is `allow`. With train.gradient_reduction=fast there is
/// nothing to settle.
Result<int> settled_shards(const Recipe& recipe, const std::filesystem::path& config, int ranks);

/// What `resolve` gives on rank 0, the only one that calls it, on all ranks.
Result<StartPlan> planned_for_all(Collectives& group, const std::string& what,
                                  const std::function<Result<StartPlan>()>& resolve);

}  // namespace carnot
