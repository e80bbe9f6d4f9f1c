// run/folder_lock.h -- one writer at a time in a run's folder, or in a comparison's.
//
// The lock is the system's (flock) on FOLDER/.carnot-lock. The file says who holds the lock and since when, for people
// alone. What is promised:
//   * On one machine two processes never hold the same folder, whichever of its paths they name and whatever containers
//     they run in: process ids decide nothing. Nor do two calls within one process.
//   * The system frees the lock when its holder ends, however it ends. A file that a killed process left locks nothing.
//   * On NFS the lock is the server's (Linux 2.6.12 and later, not with `nolock` or `local_lock=flock`), and then holds
//     between machines. File systems without locks are written into after a warning.
//   * Who deletes .carnot-lock under a running process takes its lock away.
#pragma once

#include <filesystem>
#include <vector>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"

namespace carnot {

enum class LockState {
  Free,
  Held,
  Abandoned,  ///< the file is still there: its holder was killed
};

/// Takes the lock, shared, while it looks: a process that asks for the lock at that very moment is refused.
LockState lock_state(const std::filesystem::path& folder);

class FolderLock {
 public:
  /// Makes the folder, and those above it, if need be. Fails at once where the lock is held, naming the holder.
  static Result<FolderLock> take(const std::filesystem::path& folder);

  FolderLock(FolderLock&&) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;

  /// Lets go, and removes the folders that take() made if nothing came into them.
  ~FolderLock();

 private:
  FolderLock(std::filesystem::path folder, Descriptor file, std::vector<std::filesystem::path> made)
      : folder_(std::move(folder)), file_(std::move(file)), made_(std::move(made)) {}

  std::filesystem::path folder_;
  Descriptor file_;
  std::vector<std::filesystem::path> made_;  ///< the innermost first
};

}  // namespace carnot
