#include <ostream>

#include "carnot/program/commands.h"
#include "carnot/program/entries.h"

namespace carnot {
namespace {

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

CommandEntry manual_entry() {
  return {.name = "man", .arguments = "", .summary = "the manual page", .make = make_command<ManualCommand>};
}

}  // namespace carnot
