// commands/group_run.h -- a command's run by one process, or by the ranks that a launcher started.
#pragma once

#include <functional>

#include "carnot/core/collectives/options.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/core/rank/launcher.h"

namespace carnot {

/// Rank 0 says what is the matter; the others are silent, except for their own errors.
void log_as_rank(int rank);

/// Forms the group, runs, and leaves it. What the user reads comes from rank 0 alone. Exit::GroupLost where another
/// rank was lost, which one rank reports: the launcher may start the group again.
Exit run_in_group(const Console& console, StopLeaves leaves, const RankSetting& setting,
                  const ProcessGroupOptions& options, const std::function<Result<RunEnd>(const RunControl&)>& run);

}  // namespace carnot
