// tools/sandbox/launcher/usage.h -- what the processes of a sandbox and its private folder use together.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace carnot::launcher {

/// The children of a process, theirs, and so on. Empty if /proc does not say.
std::vector<pid_t> descendants(pid_t root);

/// Threads of these processes, of each at least one while it lives.
std::uint64_t threads_of(const std::vector<pid_t>& processes);

/// Threads of all processes of a user, as far as /proc shows them.
std::uint64_t threads_of_user(uid_t user);

/// Processor time of these processes and of the children that they waited for.
double cpu_seconds(const std::vector<pid_t>& processes);

/// Processor time of the children that this process has waited for, and of theirs.
double cpu_seconds_of_ended_children();

/// Bytes of memory that the processes hold. Pages that several share count once, where the system tells.
std::uint64_t memory_of(const std::vector<pid_t>& processes, std::uint64_t limit);

struct FolderUse {
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
};

/// Files beneath a folder, counted up to `most_entries` + 1 of them.
FolderUse folder_use(const std::string& folder, std::uint64_t most_entries);

}  // namespace carnot::launcher
