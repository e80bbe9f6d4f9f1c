// view/command/viewed_step.h -- the rows of a training step, and what methods make of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/recompute/recompute_credit.h"
#include "carnot/view/viewed_method.h"

namespace carnot {

struct ViewedStep {
  CreditedRows rows{};                  ///< its credit is the rows' own; empty if they have none
  std::vector<ViewedMethod> methods{};  ///< of trajectories(rows.file.groups)
  std::vector<std::string> notes{};     ///< what could not be computed, and why
};

/// Reads rows. Their one method is the run's, if it is given: credit as recorded, the chain that led to it if the rows
/// hold what it reads, and what the objective did to each token if they hold `logp`.
Result<ViewedStep> view_step(const std::filesystem::path& path, const std::optional<Method>& own);

}  // namespace carnot
