// run/disk_budget.h -- how much disk space a run will take at the most, part by part, before it starts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/run/budget_table.h"
#include "carnot/core/run/memory_budget.h"

namespace carnot {

/// What a run will have on disk at the most, part by part. While a checkpoint is written there is one more than
/// train.max_checkpoints; where all are kept, the parts are those of one. Trajectories count as if all were as long as
/// the context. Rank 0's, which writes for all.
std::vector<BudgetPart> disk_budget(const MemorySettings& settings);

/// Bytes left where the folder is, or will be made; empty if the system does not report them.
std::optional<std::int64_t> free_space(const std::filesystem::path& folder);

/// Fails with the parts if they are more than the bytes that are free. `folder` begins the message.
Status check_disk(const MemorySettings& settings, std::int64_t free, const std::string& folder);

}  // namespace carnot
