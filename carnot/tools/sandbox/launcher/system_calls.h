// tools/sandbox/launcher/system_calls.h -- which system calls a sandboxed program may make (seccomp).
//
// Listed are those that are allowed. Calls that reach out of the sandbox (sockets, tracing, mounts, keys, io_uring,
// shared memory of the system) answer "operation not permitted"; anything else, calls of kernels to come included, "not
// implemented". Calls of another architecture end the program.
#pragma once

#include "plan.h"

namespace carnot::launcher {

/// True if the kernel has filters.
bool has_system_call_filters();

/// From now on, for this process and its children. Without namespaces of its own, the program also leaves neither its
/// process group nor changes permissions or times of files, and signals none but itself. REQUIRES: no_new_privs.
/// Throws SetupFailure.
void filter_system_calls(const Plan& plan);

}  // namespace carnot::launcher
