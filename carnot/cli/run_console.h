// cli/run_console.h -- what commands that run models have in common: signals, messages, how they end.
#pragma once

#include "carnot/cli/console.h"
#include "carnot/cli/stop_signals.h"
#include "carnot/generate/jobs.h"
#include "carnot/run/run.h"

namespace carnot {

/// Warnings go to the console, freed memory is kept for the next tensors.
void prepare_to_compute();

/// The same; the first SIGINT or SIGTERM asks the run to stop, the second leaves at once.
RunControl prepare_run(const Console& console, StopLeaves leaves);

/// Signals as above. Until here, loading and reading end at the first signal.
JobControl prepare_job(const Console& console);

/// Success or Interrupted, or what report() says.
Exit ended(const Result<RunEnd>& end, const Console& console);

}  // namespace carnot
