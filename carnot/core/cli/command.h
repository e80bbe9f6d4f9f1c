// cli/command.h -- a command of the program: what it takes and what it does, in one class and one file.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "carnot/core/cli/console.h"
#include "carnot/core/cli/option_parser.h"

namespace carnot {

/// One call of a command. Its members take the values of the arguments.
class Command {
 public:
  virtual ~Command() = default;

  /// Every argument with the member that takes it; nothing is run by this.
  virtual void declare(OptionParser&) {}

  virtual Exit run(const Console& console) = 0;

  /// What `--help` prints below the usage: keys of an environment or a method that the arguments name.
  virtual Exit print_keys(const Console&) { return Exit::Success; }
};

/// Whose the `key=value` arguments are.
enum class Settings { None, OfItsOwn, OfRecipe };

struct CommandEntry {
  std::string_view name;
  std::string_view arguments;  ///< as they follow the name: "RECIPE [key=value ...]"
  std::string_view summary;
  std::string_view example{};  ///< arguments of a call that makes sense, for `--help`
  Settings settings = Settings::None;
  std::function<std::unique_ptr<Command>()> make{};  ///< empty: of `help`, which the command line answers itself
};

template <class OneCommand>
std::unique_ptr<Command> make_command() {
  return std::make_unique<OneCommand>();
}

}  // namespace carnot
