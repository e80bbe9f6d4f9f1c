// cli/usage.h -- what commands take, in words: --help, completion scripts, the manual page.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/core/cli/option_parser.h"

namespace carnot {

struct CommandUsage {
  std::string name{};
  std::string arguments{};  ///< as they follow the name: "RECIPE [key=value ...]"
  std::string summary{};
  std::string example{};     ///< a whole command line
  bool recipe_keys = false;  ///< takes settings of a recipe, whose keys shells complete
  std::vector<OptionUsage> options{};
};

/// For a terminal of 100 columns.
std::string usage_text(const CommandUsage& usage);

/// What `shell` (bash, zsh or fish) reads to complete commands, flags, their values, and the keys of a recipe.
std::string completion_script(const std::string& shell, std::span<const CommandUsage> usages,
                              std::span<const std::string> keys);

/// In the language of man.
std::string manual_page(std::span<const CommandUsage> usages, const std::string& version);

}  // namespace carnot
