// commands/run_console.h -- what commands that run models have in common: signals, messages, how they end.
#pragma once

#include "carnot/core/cli/console.h"
#include "carnot/core/cli/stop_signals.h"
#include "carnot/core/run/run.h"

namespace carnot {

/// Warnings go to the console, freed memory is kept for the next tensors.
void prepare_to_compute();

/// The same; the first SIGINT or SIGTERM asks the run to stop, the second leaves at once.
RunControl prepare_run(const Console& console, StopLeaves leaves);

Exit exit_of(RunEnd end);

/// exit_of(), or what report() says.
Exit ended(const Result<RunEnd>& end, const Console& console);

}  // namespace carnot
