#include <ostream>

#include "carnot/core/commands/recipe_keys.h"
#include "carnot/program/commands.h"
#include "carnot/program/entries.h"

namespace carnot {
namespace {

/// The script that completes command lines in a shell; knows the keys of the default recipe.
class CompletionCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("SHELL", shell_, {"bash", "zsh", "fish"}, "whose completion to print; default: bash");
  }

  Exit run(const Console& console) override {
    auto recipe = read_recipe({}, {});
    if (!recipe) return report(console, recipe.error());
    std::vector<std::string> keys;
    const FieldTable table = recipe->table();
    for (const FieldRow& row : table.rows()) keys.push_back(row.key);
    console.out << completion_script(shell_, command_usages(carnot_commands().commands), keys) << std::flush;
    return Exit::Success;
  }

 private:
  std::string shell_ = "bash";
};

/// The manual page, for `man -l`.
class ManualCommand final : public Command {
 public:
  Exit run(const Console& console) override {
    const CommandTable& table = carnot_commands();
    console.out << manual_page(command_usages(table.commands), table.version) << std::flush;
    return Exit::Success;
  }
};

}  // namespace

CommandEntry completion_entry() {
  return {.name = "completion",
          .arguments = "[bash|zsh|fish]",
          .summary = "completion of commands, flags and keys, for a shell to read",
          .example = "bash",
          .make = make_command<CompletionCommand>};
}

CommandEntry manual_entry() {
  return {.name = "man", .arguments = "", .summary = "the manual page", .make = make_command<ManualCommand>};
}

}  // namespace carnot
