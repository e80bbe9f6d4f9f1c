// cli/run_list.h -- the runs below a folder: what each trains, how far it is, and whether it still runs.
#pragma once

#include <string>

#include "carnot/base/result.h"
#include "carnot/cli/list.h"

namespace carnot {

/// A line a run, or a JSON object. `state` is
///   running   a process is writing
///   finished  there is a summary.json
///   stopped   its process let go of the folder: Ctrl-C, or an error
///   dead      its process was killed
/// Success is that on validation tasks after training; until then that of the last training step.
Result<std::string> list_runs(const ListRequest& request);

}  // namespace carnot
