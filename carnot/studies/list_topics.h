// studies/list_topics.h -- what `carnot list` prints of runs and of analyses.
#pragma once

#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/cli/list.h"

namespace carnot {

/// The runs below a folder, a line for each, or a JSON object: what it trains, how far it is, and `state`:
///   running   a process is writing
///   finished  there is a summary.json
///   stopped   its process let go of the folder: Ctrl-C, or an error
///   dead      its process was killed
/// Success is that on validation tasks after training; until then that of the last training step.
Result<std::string> list_runs(const ListRequest& request);

/// The analyses with their summaries.
Result<std::string> list_analyses(const ListRequest& request);

}  // namespace carnot
