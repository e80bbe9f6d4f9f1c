// cli/inspect.h -- `carnot inspect`: finds the rollouts, the trajectory and the tokenizer, and shows them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/base/result.h"

namespace carnot {

struct InspectRequest {
  std::filesystem::path path{};        ///< a rollouts file, or a run folder: its latest one
  int row = 0;                         ///< line of the trajectory to show, from 1; 0: none chosen
  std::string trajectory{};            ///< its traj_id; empty: none chosen
  std::filesystem::path tokenizer{};   ///< empty: the run folder's
  bool tokens = false;                 ///< with a table of the sampled tokens
  std::vector<std::string> columns{};  ///< of that table; empty: all there are
  bool colour = false;
};

/// A list of the trajectories where none is chosen; otherwise the chosen one. Without a tokenizer its text is the row's
/// `input` and `output`, without spans.
Result<std::string> inspect(const InspectRequest& request);

}  // namespace carnot
