#include "carnot/core/credit/gains.h"

#include <algorithm>

namespace carnot {

std::vector<Gain> gains_of(const Trajectory& trajectory, GainSteps steps) {
  std::vector<Gain> gains;
  for (int k = 0; k < trajectory.num_turns(); ++k) {
    const auto& gain = trajectory.turn(k).info_gain;
    if (!gain || (steps == GainSteps::NonzeroGains && *gain == 0)) continue;
    gains.push_back(
        {.turn = k, .step = steps == GainSteps::Turns ? k : static_cast<int>(gains.size()), .value = *gain});
  }
  return gains;
}

std::size_t next_gain(const std::vector<Gain>& gains, int k) {
  const auto found = std::find_if(gains.begin(), gains.end(), [&](const Gain& gain) { return gain.turn >= k; });
  return static_cast<std::size_t>(found - gains.begin());
}

}  // namespace carnot
