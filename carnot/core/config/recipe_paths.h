// config/recipe_paths.h -- relative paths in a recipe: from the working directory, or else from the recipe's folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace carnot {

/// True for the keys whose values name files and folders that a run reads.
bool names_files(std::string_view key);

/// `text`, a path or FILE.py:FUNCTION, with `folder` in front where it is relative, is not there from the working
/// directory, and is there from `folder`.
std::string found_from(const std::filesystem::path& folder, const std::string& text);

}  // namespace carnot
