// worlds/swe/unified_diff.h -- patches as git writes them, for SWE-bench's rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/worlds/swe/task.h"

namespace carnot {

struct DiffHunk {
  std::size_t old_start = 0;         ///< line number of its first line; 0 for a file that is made
  std::vector<std::string> lines{};  ///< each with ' ', '-' or '+' before it, without its end
  bool old_ends_without_newline = false;
  bool new_ends_without_newline = false;
};

struct FileDiff {
  std::string old_path{};  ///< empty: the file is made
  std::string new_path{};  ///< empty: the file is removed
  std::vector<DiffHunk> hunks{};
};

/// Every file of a patch. The error names the line. Patches of binary files are refused.
Result<std::vector<FileDiff>> parse_unified_diff(std::string_view patch, const std::string& name);

/// Changes `files`; nothing if it fails. Every line that the patch shows has to be where it says.
Status apply_diff(const std::vector<FileDiff>& patch, SweFiles& files, const std::string& name);

}  // namespace carnot
