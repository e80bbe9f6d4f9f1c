// tools/sandbox/launcher/private_root.h -- the file system that a sandboxed program sees, in a mount namespace of its
// own.
//
// Read-only: /usr, /bin, /sbin, /lib*, a few files of /etc, and the folders of the plan. /tmp is the private folder, in
// memory; one folder of it may be seen in the root as well. /dev has null, zero, full, random, urandom. There is no
// /proc, no /sys, and nothing else.
#pragma once

#include <string>
#include <vector>

#include "plan.h"

namespace carnot::launcher {

/// A folder as the program names it, and as it is called without symbolic links.
struct SharedFolder {
  std::string name{};
  std::string real{};
};

/// The plan's folders; before the root changes. Throws SetupFailure.
std::vector<SharedFolder> find_folders(const Plan& plan);

/// Replaces the root of this process, which is alone in new user and mount namespaces with all rights in them. `owner`
/// owns the private folder, which becomes the working folder. Throws SetupFailure.
void enter_private_root(const Plan& plan, const std::vector<SharedFolder>& folders, uid_t owner);

}  // namespace carnot::launcher
