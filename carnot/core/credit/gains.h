// credit/gains.h -- the information gains of a trajectory's turns, as IGPO's and A2TGPO's rules read them.
#pragma once

#include <vector>

#include "carnot/core/data/trajectory.h"

namespace carnot {

/// Which turns count as separate steps.
enum class GainSteps {
  Turns,  ///< every turn; one without a gain contributes nothing
  /// Published code: only turns with a gain other than 0. The others are merged with the next such turn (after the
  /// last: with the outcome), and steps are counted after merging.
  NonzeroGains,
};

/// One gain: the last turn that it covers, and its step number.
struct Gain {
  int turn = 0;
  int step = 0;
  double value = 0;
};

/// The gains of a trajectory in order.
std::vector<Gain> gains_of(const Trajectory& trajectory, GainSteps steps);

/// Index of the first gain that covers turn k or a later one; gains.size() if only the outcome is left.
std::size_t next_gain(const std::vector<Gain>& gains, int k);

}  // namespace carnot
