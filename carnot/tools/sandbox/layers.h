// tools/sandbox/layers.h -- which layers of a sandbox this machine grants, found out by making one with each.
#pragma once

#include <string>
#include <vector>

#include "carnot/tools/sandbox/options.h"

namespace carnot {

struct SandboxLayers {
  bool namespaces = false;    ///< users, processes, mounts, network, IPC, host name, control groups
  std::string bubblewrap{};   ///< the program bwrap where it has to make them; empty: carnot-sandbox does
  int landlock = 0;           ///< its version; 0: none
  bool system_calls = false;  ///< a filter (seccomp)

  bool operator==(const SandboxLayers&) const = default;
};

/// Limits are always there. Isolated: namespaces and the filter. Confined: Landlock and the filter.
SandboxLevel level_of(const SandboxLayers& layers);

/// "isolated (namespaces, Landlock 7, system calls, limits)".
std::string shown(const SandboxLayers& layers);

}  // namespace carnot
