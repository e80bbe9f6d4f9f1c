// program/offers.h -- what the program's annexes give to the rooms of the core.
#pragma once

namespace carnot {

/// Offers worlds, tools, statistics on GPUs, ranks, remote rollouts and sentence encoders, as far as the build has
/// them. Call it once, before a command runs.
void make_offers();

}  // namespace carnot
