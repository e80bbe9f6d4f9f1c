// serving/job_console.h -- what the commands `generate`, `score` and `serve` share: the flags of one model, and how
// they talk to the program around them.
#pragma once

#include "carnot/core/cli/console.h"
#include "carnot/core/cli/option_parser.h"
#include "carnot/serving/jobs.h"

namespace carnot {

void declare_model(OptionParser& take, ModelRequest& model);

/// The first SIGINT or SIGTERM asks the job to stop, the second leaves at once. Until here, loading and reading end at
/// the first signal.
JobControl prepare_job(const Console& console);

}  // namespace carnot
