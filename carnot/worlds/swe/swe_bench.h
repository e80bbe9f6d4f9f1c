// worlds/swe/swe_bench.h -- SWE-bench's rows (Jimenez et al., arXiv:2310.06770), and the repositories that belong to
// them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/worlds/swe/task.h"
#include "carnot/worlds/swe/unified_diff.h"

namespace carnot {

struct SweBenchRow {
  std::string instance_id{};
  std::string repo{};         ///< "django/django"
  std::string base_commit{};  ///< that the issue is about
  std::string problem_statement{};
  std::vector<FileDiff> patch{};       ///< the repair; tests are not in it
  std::vector<FileDiff> test_patch{};  ///< hidden tests
  std::vector<std::string> fail_to_pass{};
  std::vector<std::string> pass_to_pass{};
};

/// The rows of a file (rows/row_file.h). Lists of tests may be JSON within a string, as the published data has them.
/// The error names file, line and key, for all bad rows at once. `name` is for messages.
Result<std::vector<SweBenchRow>> parse_swe_bench_rows(std::string_view text, const std::string& name);

/// The files of a folder, without `.git`, compiled Python and links.
Result<SweFiles> read_repository(const std::filesystem::path& folder);

/// The row with its repository at `base_commit`: the patches have to fit. Tests that the test patch touches are given
/// to pytest.
Result<SweTask> swe_bench_task(const SweBenchRow& row, SweFiles repository);

}  // namespace carnot
