// tools/sandbox/launcher/plan.h -- the command line of carnot-sandbox: layers, limits, folders, a command.
//
//   carnot-sandbox [KEY=VALUE ...] -- PROGRAM [ARGUMENT ...]
//   carnot-sandbox probe
//
// The program's environment is made here, and nothing of the caller's is in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace carnot::launcher {

/// Descriptors that the caller hands over, besides standard input, output and error.
inline constexpr int kControl = 3;  ///< "run SECONDS\n" starts the clock; "stop\n" or the end of the pipe ends it all
inline constexpr int kReport = 4;   ///< "failed WHY\n", or "end (exit STATUS | signal NUMBER) REASON CPU_SECONDS\n"
inline constexpr int kRequest = 5;  ///< read by the program
inline constexpr int kRemark = 6;   ///< written by the program

/// Who the program is where the launcher is root, outside and (in a user namespace) inside.
inline constexpr uid_t kNobody = 65534;
inline constexpr uid_t kInside = 1000;

struct Plan {
  bool namespaces = false;
  bool landlock = false;
  bool system_calls = false;
  uid_t as_user = 0;       ///< where not 0: root is given up first, as if this user had started the launcher
  std::string folder{};    ///< the private folder; empty with namespaces, whose private folder is /tmp
  std::string shown_at{};  ///< with namespaces: where the private folder's own folder of that name is seen as well
  std::vector<std::string> read{};  ///< that the program may read, besides the system's own folders
  std::uint64_t memory = 0;         ///< bytes: of one process's address space, and of what all of them hold
  std::uint64_t cpu = 0;            ///< seconds: of one process, and of all of them together
  std::uint64_t processes = 0;
  std::uint64_t open_files = 0;
  std::uint64_t disk = 0;  ///< bytes: of one file, and of the private folder
  std::vector<std::string> command{};

  /// The private folder as the program sees it.
  const char* home() const { return namespaces ? "/tmp" : folder.c_str(); }
};

/// Files and folders in the private folder.
inline constexpr std::uint64_t kMostEntries = 4096;

/// False with `problem` set where an argument is unknown or has no number where one belongs.
bool read_plan(int count, char** arguments, Plan& plan, std::string& problem);

}  // namespace carnot::launcher
