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

/// A method whose credit is shown.
struct PageMethod {
  std::string name{};
  std::string composition{};            ///< as `carnot credit --method` takes it; empty: credit as the rows hold it
  std::vector<std::string> settings{};  ///< as that command's key=value
  std::optional<Method> method{};       ///< of the rows' own credit, only if it is known
};

struct ViewedStep {
  CreditedRows rows{};                  ///< its credit is the rows' own; empty if they have none
  std::vector<ViewedMethod> methods{};  ///< of trajectories(rows.file.groups)
  std::vector<std::string> missing{};   ///< by method: which signals the rows lack for it; empty: none
  std::vector<std::string> notes{};     ///< what could not be computed, and why
};

/// Reads rows. Of each method: its credit, the chain that led to it if the rows hold what the rules read, and what the
/// objective did to each token if they hold `logp`.
Result<ViewedStep> view_step(const std::filesystem::path& path, const std::vector<PageMethod>& methods);

}  // namespace carnot
