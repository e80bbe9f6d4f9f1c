// studies/comparison_plan.h -- every run of a comparison, resolved before the first one starts.
//
//   OUTPUT/seed_S/warm_start/   the policy that all methods of this seed start from, evaluated once
//   OUTPUT/seed_S/grpo+aem/     a run folder per method, as `carnot train` writes it
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/method/contestants.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

/// As the command line has it.
struct ComparisonRequest {
  std::filesystem::path recipe{};
  std::string methods = "all";  ///< method/contestants.h
  std::string seeds = "0-2";
  std::string base{};  ///< one of the methods; empty: the first, of `all` grpo
  std::filesystem::path output = "runs/compare";
  std::vector<std::string> settings{};  ///< `key=value` for all runs
};

/// One seed: the start that all methods share, and a recipe per contestant.
struct PlannedSeed {
  std::int64_t seed = 0;
  Recipe start;
  std::vector<Recipe> runs{};
};

struct LeftOut {
  std::string name{};
  std::string reason{};
};

struct ComparisonPlan {
  std::string recipe{};  ///< its path as it was given
  std::filesystem::path output{};
  std::vector<Contestant> contestants{};
  std::size_t base = 0;
  std::vector<LeftOut> left_out{};
  std::vector<std::string> notes{};  ///< where the recipe's `objective` section replaces what a method asks for
  std::vector<PlannedSeed> seeds{};
};

/// Resolves all recipes and compares them with what the output folder holds already. Every problem at once; nothing is
/// written. A folder that holds a run of other settings is a problem, with the keys that differ.
Result<ComparisonPlan> plan_comparison(const ComparisonRequest& request);

/// "15 runs: 5 methods x 3 seeds", then a line per run with its folder and how far it is.
std::string plan_text(const ComparisonPlan& plan);

/// True if the folder holds a whole run.
bool is_finished(const std::filesystem::path& run_folder);
/// The same for the start of a seed.
bool is_start_finished(const std::filesystem::path& run_folder);

}  // namespace carnot
