// cli/command_line.h -- finds the command that the user typed and reads its arguments; answers --help and --version.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/cli/usage.h"

namespace carnot {

/// What a program understands.
struct CommandTable {
  std::vector<CommandEntry> commands{};      ///< in the order of `--help`
  std::vector<std::string_view> left_out{};  ///< commands that this build does not have
  std::string version{};
  /// `help keys [RECIPE] [key=value ...]`; an empty path means the default recipe.
  std::function<Exit(const std::filesystem::path& recipe, const std::vector<std::string>& overrides, const Console&)>
      print_recipe_keys{};
};

/// A command with its arguments, or an answer of the command line itself. Nothing happens before it is called.
using Action = std::function<Exit(const Console& console)>;

/// What the arguments (without the program's name) ask for. The error says what is wrong with their use.
Result<Action> parse_command_line(const CommandTable& table, std::span<const std::string> arguments);

/// Every command with what it takes.
std::vector<CommandUsage> command_usages(std::span<const CommandEntry> commands);

CommandEntry help_entry();

}  // namespace carnot
