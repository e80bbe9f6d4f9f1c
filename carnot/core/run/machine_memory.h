// run/machine_memory.h -- what the machine or the control group leaves to this process, and what the process has
// taken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace carnot {

struct MachineMemory {
  std::int64_t bytes = 0;  ///< that this process may come to hold, what it holds now included; 0: unknown
  std::string source{};    ///< "of this machine", "of control group /jobs/7"
};

/// The least of what the kernel calls available and what is left below the limits of the process's control groups
/// (versions 1 and 2; file cache counts as free). Files are looked up below `root`.
MachineMemory available_memory(const std::filesystem::path& root = "/");

/// Bytes of memory that the process holds now, less what its heap has free, and the most that it ever held.
std::int64_t memory_in_use();
std::int64_t peak_resident_memory();

}  // namespace carnot
