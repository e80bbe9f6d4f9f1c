// view/command/after_step.h -- what a training step did to its tokens: their log-probabilities under later weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tree.h"

namespace carnot {

struct AfterStep {
  std::int64_t checkpoint = -1;  ///< its step; -1: there is none from the step on
  std::vector<Group> groups{};   ///< those of the step, LogProbOld under the checkpoint; empty without one
};

/// Measures the groups of step `step` under the first checkpoint of the run whose step is at least that: the weights
/// after the step where a checkpoint has its number. REQUIRES: the groups have the run's tokens.
Result<AfterStep> measure_after(const std::filesystem::path& run, std::int64_t step, const std::vector<Group>& groups);

}  // namespace carnot
