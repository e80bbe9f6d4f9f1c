// distributed/started_ranks.h -- the real program, started as the ranks of a group, for tests of what a user sees.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace carnot::testing {

/// How a rank ended.
struct EndedRank {
  int exit = -1;  ///< -1: by a signal
  int signal = 0;
  std::string out{}, err{};
};

/// Ranks of a group that meets at the loopback. Rank 0 serves the group's store, as with srun.
class StartedRanks {
 public:
  StartedRanks(int size, const std::vector<std::string>& arguments);
  /// Each with its own arguments.
  explicit StartedRanks(const std::vector<std::vector<std::string>>& arguments);
  /// Kills what is still running.
  ~StartedRanks();
  StartedRanks(const StartedRanks&) = delete;
  StartedRanks& operator=(const StartedRanks&) = delete;

  pid_t process(int rank) const { return processes_.at(static_cast<std::size_t>(rank)); }
  /// Waits until all have ended. Each is killed after three minutes.
  std::vector<EndedRank> wait();

 private:
  ScratchFolder scratch_;
  std::vector<pid_t> processes_;
};

}  // namespace carnot::testing
