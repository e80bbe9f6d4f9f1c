// program/commands.h -- every command of the program carnot.
#pragma once

#include "carnot/core/cli/command_line.h"

namespace carnot {

/// The table, in the order of `carnot --help`. Adding one: a file, its line in entries.h and here.
const CommandTable& carnot_commands();

}  // namespace carnot
