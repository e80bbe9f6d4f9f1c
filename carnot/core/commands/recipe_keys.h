// commands/recipe_keys.h -- recipes as commands read them, and their keys in words.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/core/cli/console.h"
#include "carnot/core/cli/list.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

/// Fails if `path` is empty or nothing has that name; the error lists the recipes in its folder and in recipes/, or
/// those that come with the program where there is no such folder.
Status check_recipe_exists(const std::filesystem::path& path);

/// The recipe that find_recipe() finds; the default recipe where `path` is empty; of a run folder the recipe that the
/// run recorded, to continue it in that folder (run_folder and resume may be given all the same).
Result<Recipe> read_recipe(const std::filesystem::path& path, const std::vector<std::string>& overrides);

/// Every key with its type, default and sentence.
Exit print_recipe_keys(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                       const Console& console);

/// Those of the default recipe, as print_recipe_keys() has them or as JSON.
Result<std::string> list_recipe_keys(const ListRequest& request);

}  // namespace carnot
