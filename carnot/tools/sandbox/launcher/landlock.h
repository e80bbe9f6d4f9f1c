// tools/sandbox/launcher/landlock.h -- Landlock: which files a program may touch, whatever their permissions say.
#pragma once

#include "plan.h"

namespace carnot::launcher {

/// The first version that keeps files from being emptied.
inline constexpr int kLeastLandlock = 3;

/// The kernel's version of Landlock; 0 where it has none.
int landlock_version();

/// From now on this process and its children read and run what is in the system's folders and the plan's, write beneath
/// the private folder alone, bind and connect no TCP socket (from version 4), and signal none but each other (from 6).
/// REQUIRES: no_new_privs. Throws SetupFailure.
void restrict_files(const Plan& plan);

}  // namespace carnot::launcher
