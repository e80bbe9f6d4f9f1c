// worlds/swe/task.h -- a repository with a fault: its files, the issue, tests that show whether it is repaired.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct SweFile {
  std::string content{};
  bool executable = false;

  bool operator==(const SweFile&) const = default;
};

/// By path beneath the repository's root.
using SweFiles = std::map<std::string, SweFile>;

/// A part of a file that the reference repair replaces. `wrong` occurs once in the file.
struct SweEdit {
  std::string path{};
  std::string wrong{};
  std::string right{};
};

struct SweTask {
  std::string id{};
  int difficulty = 0;  ///< 1 to 5; 0: no one has said
  std::string issue{};
  SweFiles repository{};                  ///< with the fault, and the tests that the policy may see
  std::vector<SweEdit> repair{};          ///< of the task's author; empty if there is only a diff
  SweFiles tests{};                       ///< written over the policy's before grading, hidden ones among them
  std::vector<std::string> test_files{};  ///< that pytest is given
  std::vector<std::string> passing{};     ///< tests that have to pass, as pytest names them
  bool no_others = false;  ///< and there must be no others (R2E); otherwise they do not matter (SWE-bench)
};

/// A task in the project's own format, which tests/tasks/swe and carnot/worlds/swe/tasks show:
///
///   difficulty: 3
///   === issue
///   === file PATH          of the repository, without the fault
///   === visible PATH       a test file that the repository has
///   === hidden PATH        a test file that it gets for grading
///   === bug PATH           lines `--- right`, the text as it is in the file, `--- wrong`, the text with the fault;
///   again
///   === expected           every test of those files, a line each
///
/// Each heading is followed by its text. The error names file and line.
Result<SweTask> parse_swe_task(std::string_view text, const std::string& id);

/// False for a path that leaves its folder, begins with '/', or is longer than a path may be.
bool is_path_beneath(std::string_view path);

}  // namespace carnot
