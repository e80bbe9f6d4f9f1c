// run/find_run.h -- from a path that a user names to a recipe, or to a checkpoint and the configuration of its run.
#pragma once

#include <filesystem>

#include "carnot/core/base/result.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

/// `path`; where it does not exist and begins with recipes/, the recipe of that name that comes with the program, if
/// there is one.
std::filesystem::path find_recipe(const std::filesystem::path& path);

/// A run folder's latest checkpoint (its SFT stage's if there is no other; a message says so), or the checkpoint folder
/// itself. It was compared with its manifest. Where a run's latest checkpoint is damaged, no earlier one is
/// chosen in silence: the error names the latest that is whole, and a user who wants that one names it.
Result<std::filesystem::path> find_checkpoint(const std::filesystem::path& path);

/// The folder with config.json and weights: a Hugging Face folder as it is, a model of the hub's cache
/// (hf/hub_cache.h), or what find_checkpoint() finds.
Result<std::filesystem::path> find_model(const std::filesystem::path& path_or_id);

/// The config.yaml above a checkpoint: run/checkpoints/global_step_N, or run/warm_start/checkpoints/global_step_N.
Result<std::filesystem::path> find_config(const std::filesystem::path& checkpoint);

/// True for the config.yaml of a run folder: a recipe that a run wrote, not a person.
bool is_recorded(const std::filesystem::path& recipe);

/// Recipe::load_recorded(), with a warning for each setting that it passes over.
Result<Recipe> load_recorded(const std::filesystem::path& config, const std::vector<std::string>& overrides);

}  // namespace carnot
