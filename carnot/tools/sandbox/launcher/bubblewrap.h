// tools/sandbox/launcher/bubblewrap.h -- the namespaces made by the program bwrap, where this one may not make them
// itself.
//
// Some systems let no program without rights make user namespaces but a few that they know, bwrap among them (a profile
// of AppArmor), or have it set-user-id.
#pragma once

#include "plan.h"
#include "program.h"

namespace carnot::launcher {

/// Starts bwrap, which starts this program again as the first process inside. The private folder is the plan's, shown
/// as /tmp. Throws SetupFailure.
Program start_in_bubblewrap(const Plan& plan);

/// What this program does when bwrap has started it: restricts itself, and starts the plan's program. Never returns.
[[noreturn]] void go_on_in_bubblewrap(const Plan& plan);

}  // namespace carnot::launcher
