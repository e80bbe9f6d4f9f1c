// bench/peak_memory.h -- memory of this process, by Linux's own count.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

namespace carnot {

/// A line of /proc/self/status ("VmHWM:", "VmRSS:"), MiB; 0 if the system does not report it.
inline double status_mebibytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::atof(line.c_str() + key.size()) / 1024;
  return 0;
}

/// The most memory held so far, GB. Pages of mapped files count once they were read.
inline double peak_gigabytes() { return status_mebibytes("VmHWM:") * 1048576e-9; }

/// The most memory held since the last call.
inline double peak_mebibytes_since_last_call() {
  const double peak = status_mebibytes("VmHWM:");
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak;
}

}  // namespace carnot
