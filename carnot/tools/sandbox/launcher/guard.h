// tools/sandbox/launcher/guard.h -- watches over the program from outside: the clock, what all its processes use, their
// end.
#pragma once

#include "plan.h"
#include "program.h"

namespace carnot::launcher {

/// Waits for orders and for the program's end, then ends every process that it left behind, and reports. While the
/// clock runs, looks every 20 ms at what all processes use together.
void watch(const Plan& plan, const Program& program);

}  // namespace carnot::launcher
