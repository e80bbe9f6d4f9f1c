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

/// The first version that keeps files from being emptied.
inline constexpr int kLeastLandlock = 3;

/// The kernel's version of Landlock; 0 where it has none.
int landlock_version();

/// Landlock: from now on this process and its children read and run what is in the system's folders and the plan's,
/// write beneath the private folder alone, bind and connect no TCP socket (from version 4), and signal none but each
/// other (from 6). REQUIRES: no_new_privs. Throws SetupFailure.
void restrict_files(const Plan& plan);

/// True if the kernel has filters.
bool has_system_call_filters();

/// Lets this process and its children make the system calls that are listed (seccomp). Calls that reach out of the
/// sandbox (sockets, tracing, mounts, keys, io_uring, shared memory of the system) answer "operation not permitted";
/// anything else, calls of kernels to come included, "not implemented". Calls of another architecture end the program.
/// Without separate namespaces, the program also leaves neither its
/// process group nor changes permissions or times of files, and signals none but itself. REQUIRES: no_new_privs.
/// Throws SetupFailure.
void filter_system_calls(const Plan& plan);

}  // namespace carnot::launcher
