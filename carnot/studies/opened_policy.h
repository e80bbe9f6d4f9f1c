// studies/opened_policy.h -- the policy of a checkpoint with the configuration of its run, ready to roll out or train.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

struct OpenedPolicy {
  std::filesystem::path checkpoint{};
  Recipe recipe{};
  ModelBundle bundle{};
};

/// The checkpoint at `path` (a run folder's latest, or a checkpoint folder) and its run's config.yaml with `key=value`
/// overrides. Sets the kernels' threads and device as the recipe says.
Result<OpenedPolicy> open_policy(const std::filesystem::path& path, const std::vector<std::string>& overrides);

/// Rollouts of the first `tasks` validation tasks, from the prompt each, with the old policy's columns.
std::vector<Group> roll_out(OpenedPolicy& policy, Engine& engine, int tasks);

}  // namespace carnot
