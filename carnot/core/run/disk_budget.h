// run/disk_budget.h -- how much a run will have on disk at the most, part by part, before it starts.
#pragma once

#include <vector>

#include "carnot/core/run/budget_table.h"
#include "carnot/core/run/memory_budget.h"

namespace carnot {

/// While a checkpoint is written there is one more than train.max_checkpoints; where all are kept, the parts are those
/// of one. Trajectories count as if all were as long as the context. Rank 0's, which writes for all.
std::vector<BudgetPart> disk_budget(const MemorySettings& settings);

}  // namespace carnot
