// worlds/command/grade.h -- stored rollouts scored with another reward, and what that changes.
#pragma once

#include <filesystem>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/text/tokenizer.h"
#include "carnot/worlds/dataset/environment.h"

namespace carnot {

struct GradeRequest {
  std::string rows{};  ///< rollout rows (docs/trajectory_format.md)
  std::string name{};  ///< theirs, for messages
  DatasetOptions scoring{};
};

struct GradedRows {
  std::string rows{};    ///< the same, with new scores and without credit
  std::string report{};  ///< old against new, for people
};

/// Scores the last response of every valid trajectory that has one; a trajectory whose score fails becomes an
/// infrastructure failure. The rows' `gts` are the right answers; a Python function gets `question`, `answer` and the
/// fields of `info` as columns. Throws ChatFailure and PeerFailure where judge or functions do not answer.
Result<GradedRows> grade_rows(const GradeRequest& request, const Tokenizer& tokenizer);

}  // namespace carnot
