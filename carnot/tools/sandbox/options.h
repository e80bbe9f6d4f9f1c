// tools/sandbox/options.h -- what code in a sandbox may use, and the least that has to keep it in.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/base/fields.h"

namespace carnot {

/// What is promised (docs/sandbox.md), by the layers that the kernel grants. Each promises what those before it do.
enum class SandboxLevel {
  Limited,   ///< limits on what it uses: for code that means no harm
  Confined,  ///< and files and system calls are restricted: no network, reads the system's folders only
  Isolated,  ///< and it has its own system: processes, file system, network
};
inline const std::vector<std::string> kSandboxLevels{"limited", "confined", "isolated"};

struct SandboxOptions {
  SandboxLevel least = SandboxLevel::Confined;
  double seconds = 30;
  int memory_mb = 1024;
  int processes = 32;
  int open_files = 64;
  int disk_mb = 64;
  int output_kb = 64;
  int code_kb = 256;
  int warm = 4;
  std::string interpreter = "python3";
  std::vector<std::string> imports{};
  std::vector<std::string> read{};
  /// "/NAME": where code at the level Isolated sees the folder NAME of its working folder as well. Not a recipe's key.
  std::string shown_at{};

  void fields(FieldVisitor& visit);
};

/// Which layers of a sandbox this machine grants, found out by making one with each.
struct SandboxLayers {
  bool namespaces = false;    ///< users, processes, mounts, network, IPC, host name, control groups
  int landlock = 0;           ///< its version; 0: none
  bool system_calls = false;  ///< a filter (seccomp)

  bool operator==(const SandboxLayers&) const = default;
};

/// Limits are always there. Isolated: namespaces and the filter. Confined: Landlock and the filter.
SandboxLevel level_of(const SandboxLayers& layers);

/// "isolated (namespaces, Landlock 7, system calls, limits)".
std::string shown(const SandboxLayers& layers);

}  // namespace carnot
