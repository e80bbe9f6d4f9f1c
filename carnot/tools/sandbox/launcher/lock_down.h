// tools/sandbox/launcher/lock_down.h -- the last steps before a program that is not trusted: no rights, limits,
// filters.
#pragma once

#include "plan.h"

namespace carnot::launcher {

/// Gives up root for good and every right with it: `user` and the group of that number, no other groups, no
/// capabilities, and none to be had from a set-user-id program. Throws SetupFailure.
void give_up_rights(uid_t user);

/// Limits, Landlock and system calls as the plan has them. REQUIRES: give_up_rights() was called. Throws SetupFailure.
void lock_down(const Plan& plan);

}  // namespace carnot::launcher
