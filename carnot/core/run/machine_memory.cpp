#include "carnot/core/run/machine_memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "carnot/core/base/file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// The number after `key` at the start of a line; -1 if there is none.
std::int64_t number_behind(const std::string& text, const std::string& key) {
  for (std::string_view line : split_lines(text)) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest{std::string(line.substr(key.size()))};
    std::int64_t value = -1;
    if (rest >> value) return value;
  }
  return -1;
}

std::string content(const fs::path& path) {
  const auto text = read_file(path);
  return text ? *text : std::string();
}

std::int64_t number_in(const fs::path& path) { return number_behind(content(path), ""); }

std::int64_t status_bytes(const fs::path& root, const std::string& key) {
  return std::max<std::int64_t>(0, number_behind(content(root / "proc/self/status"), key)) * 1024;
}

/// Names of a version's files and keys.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* cache;  ///< in memory.stat
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache "};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "file "};

/// Free below the limits of the group and those above it, `mount` being where the groups lie.
void limit_by_groups(const fs::path& mount, const std::string& group, const GroupFiles& files, std::int64_t own,
                     MachineMemory& memory) {
  fs::path at = group;
  while (true) {
    const fs::path folder = mount / at.relative_path();
    const std::int64_t limit = number_in(folder / files.limit), usage = number_in(folder / files.usage);
    if (limit >= 0 && usage >= 0 && limit < (std::int64_t{1} << 60)) {
      const std::int64_t cache = std::max<std::int64_t>(0, number_behind(content(folder / "memory.stat"), files.cache));
      const std::int64_t free = std::clamp<std::int64_t>(limit - usage + cache + own, 1, limit);
      if (memory.bytes == 0 || free < memory.bytes) memory = {free, "of control group " + at.string()};
    }
    if (at == at.parent_path()) return;
    at = at.parent_path();
  }
}

}  // namespace

MachineMemory available_memory(const fs::path& root) {
  const std::int64_t own = status_bytes(root, "VmRSS:");
  MachineMemory memory;
  const std::int64_t kilobytes = number_behind(content(root / "proc/meminfo"), "MemAvailable:");
  if (kilobytes >= 0) memory = {kilobytes * 1024 + own, "of this machine"};
  // Lines of /proc/self/cgroup: "0::/group" (version 2), "7:memory:/group" (version 1).
  const std::string groups = content(root / "proc/self/cgroup");
  for (std::string_view line : split_lines(groups)) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    const std::string group(line.substr(second + 1));
    if (controllers == ",,") limit_by_groups(root / "sys/fs/cgroup", group, kVersion2, own, memory);
    if (controllers.find(",memory,") != std::string::npos)
      limit_by_groups(root / "sys/fs/cgroup/memory", group, kVersion1, own, memory);
  }
  return memory;
}

std::int64_t memory_in_use() {
  const auto free_in_heap = static_cast<std::int64_t>(mallinfo2().fordblks);
  return std::max<std::int64_t>(0, status_bytes("/", "VmRSS:") - free_in_heap);
}

std::int64_t peak_resident_memory() { return status_bytes("/", "VmHWM:"); }

}  // namespace carnot
