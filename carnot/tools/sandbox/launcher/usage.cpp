#include "usage.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace carnot::launcher {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string folder_of(pid_t process) { return "/proc/" + std::to_string(process); }

void add_children(pid_t process, std::vector<pid_t>& found) {
  std::error_code problem;
  for (const auto& thread : std::filesystem::directory_iterator(folder_of(process) + "/task", problem)) {
    std::istringstream children(read_text(thread.path() / "children"));
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
}

/// Pages that only this process has, and its share of the others.
std::uint64_t proportional_bytes(pid_t process) {
  std::istringstream lines(read_text(folder_of(process) + "/smaps_rollup"));
  for (std::string line; std::getline(lines, line);)
    if (unsigned long long kilobytes = 0; std::sscanf(line.c_str(), "Pss: %llu kB", &kilobytes) == 1)
      return kilobytes << 10;
  return 0;
}

std::uint64_t resident_bytes(pid_t process) {
  std::istringstream text(read_text(folder_of(process) + "/statm"));
  std::uint64_t size = 0, resident = 0;
  text >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t threads_of(pid_t process) {
  struct stat tasks{};
  if (::stat((folder_of(process) + "/task").c_str(), &tasks) != 0) return 0;
  return tasks.st_nlink > 2 ? tasks.st_nlink - 2 : 1;  // a link from above, its own, and one of each thread
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) {
  std::vector<pid_t> found;
  add_children(root, found);
  for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i], found);
  return found;
}

std::uint64_t threads_of(const std::vector<pid_t>& processes) {
  std::uint64_t threads = 0;
  for (const pid_t process : processes) threads += threads_of(process);
  return threads;
}

std::uint64_t threads_of_user(uid_t user) {
  std::uint64_t threads = 0;
  std::error_code problem;
  for (std::filesystem::directory_iterator entry("/proc", problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const auto process = static_cast<pid_t>(std::atoi(entry->path().filename().c_str()));
    struct stat owner{};
    if (process > 0 && ::stat(entry->path().c_str(), &owner) == 0 && owner.st_uid == user)
      threads += threads_of(process);
  }
  return threads;
}

double cpu_seconds(const std::vector<pid_t>& processes) {
  unsigned long long ticks = 0;
  for (const pid_t process : processes) {
    const std::string text = read_text(folder_of(process) + "/stat");
    const std::size_t name_end = text.rfind(')');  // a name may have blanks and brackets
    if (name_end == std::string::npos) continue;
    std::istringstream fields(text.substr(name_end + 1));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;  // up to majflt and cmajflt
    for (unsigned long long value = 0, i = 0; i < 4 && fields >> value; ++i) ticks += value;  // [c]utime, [c]stime
  }
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double cpu_seconds_of_ended_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::uint64_t memory_of(const std::vector<pid_t>& processes, std::uint64_t limit) {
  std::uint64_t resident = 0, proportional = 0;
  for (const pid_t process : processes) resident += resident_bytes(process);
  if (resident <= limit) return resident;
  for (const pid_t process : processes) proportional += proportional_bytes(process);
  return proportional > 0 ? proportional : resident;
}

FolderUse folder_use(const std::string& folder, std::uint64_t most_entries) {
  FolderUse use;
  std::error_code problem;
  std::filesystem::recursive_directory_iterator entry(folder, problem), end;
  for (; !problem && entry != end && use.entries <= most_entries; entry.increment(problem)) {
    ++use.entries;
    std::error_code gone;
    if (entry->is_symlink(gone) || !entry->is_regular_file(gone)) continue;
    if (const std::uintmax_t size = entry->file_size(gone); !gone) use.bytes += size;
  }
  return use;
}

}  // namespace carnot::launcher
