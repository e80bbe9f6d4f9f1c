// rows/demonstration_files.h -- the demonstrations of `sft.source`: files of conversations, or of trajectories.
//
// A conversation is rendered by the chat format. A trajectory (docs/trajectory_format.md) is its token ids, which are
// taken as they are; it is a demonstration if it succeeded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/rows/demonstration.h"

namespace carnot {

/// The demonstrations of one row, or of all trajectories of one task: they are trained on or held out together.
using DemonstratedTask = std::vector<Demonstration>;

/// Reads one file's text; `name` is for messages. Rows longer than `max_tokens`, and trajectories without success, are
/// left out and counted in the log. The error has all that is wrong with the rows, with file and line, up to
/// kMaxProblems.
Result<std::vector<DemonstratedTask>> parse_demonstrations(std::string_view text, const std::string& name,
                                                           const ChatFamily& chat, int max_tokens);

struct DemonstrationFiles {
  std::vector<std::string> paths{};
  double held_out_share = 0;  ///< of the tasks, rounded up; one at least is trained on
  std::uint64_t seed = 0;     ///< decides which
  int max_tokens = 4096;
};

struct SplitDemonstrations {
  std::vector<Demonstration> train{};
  std::vector<Demonstration> held_out{};
};

/// Reads all files. The error has the problems of all of them.
Result<SplitDemonstrations> read_demonstrations(const DemonstrationFiles& files, const ChatFamily& chat);

}  // namespace carnot
