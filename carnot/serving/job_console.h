// serving/job_console.h -- how the commands `generate` and `score` talk to the program around them.
#pragma once

#include "carnot/core/cli/console.h"
#include "carnot/serving/jobs.h"

namespace carnot {

/// The first SIGINT or SIGTERM asks the job to stop, the second leaves at once. Until here, loading and reading end at
/// the first signal.
JobControl prepare_job(const Console& console);

}  // namespace carnot
