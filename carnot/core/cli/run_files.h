// cli/run_files.h -- which rollouts and which tokenizer a path that a user names leads to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

struct RolloutsOfStep {
  std::int64_t step = -1;  ///< N of step_N.jsonl; -1 for other names
  std::filesystem::path path{};
};

/// Every rollouts/step_N.jsonl of a run folder, by step; a file as it is. Never empty. The error about a folder that
/// holds runs names them.
Result<std::vector<RolloutsOfStep>> rollouts_at(const std::filesystem::path& path);

/// The steps that `wanted` names: numbers and ranges ("5", "10-20"). Without any: at most `most`, the first, the last
/// and others at even distances. Says which steps have no rollouts.
Result<std::vector<RolloutsOfStep>> choose_steps(const std::vector<RolloutsOfStep>& all,
                                                 const std::vector<std::string>& wanted, std::size_t most);

/// The tokenizer of the run that `rollouts` belongs to: its latest checkpoint's, before the first one its SFT stage's
/// or that of the model it started from. Empty if there is none.
std::filesystem::path tokenizer_beside(const std::filesystem::path& rollouts);

/// Fails if the tokenizer lacks a token of the trajectory; `path` is for the message.
Status check_tokens(const Trajectory& trajectory, const Tokenizer& tokenizer, const std::filesystem::path& path);

}  // namespace carnot
