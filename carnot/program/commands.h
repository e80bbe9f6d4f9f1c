// program/commands.h -- every command of the program carnot.
#pragma once

#include "carnot/core/cli/command_line.h"

namespace carnot {

/// The table, in the order of `carnot --help`. Adding one: a file, its line in entries.h and here.
const CommandTable& carnot_commands();

/// Offers worlds, tools, statistics on GPUs, ranks, remote rollouts and sentence encoders, as far as the build has
/// them. Call it once, before a command runs.
void make_offers();

}  // namespace carnot
