// credit/turn_gain.h -- IGPO: information gains and outcome as turn rewards, normalised and summed (arXiv:2510.14967).
#pragma once

#include <vector>

#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"
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

/// Reads the raw gain of each turn that has one, and the reward.
void read_gains(std::span<const Trajectory> trajectories, const CreditTable& table, RuleReadings& readings);

/// Index of the first gain that covers turn k or a later one; gains.size() if only the outcome is left.
std::size_t next_gain(const std::vector<Gain>& gains, int k);

enum class GainPool {
  Joint,     ///< gains and outcomes of a group share one mean and deviation (the paper)
  Separate,  ///< gains among gains, outcomes among outcomes
  /// Published code: discounted sums of raw gains, ending in the discounted outcome and rescaled to the outcomes' size
  /// by the batch's deviations, normalised among those of the same step; plus 1.5 times the outcome's z.
  StepSums,
};

struct TurnGainOptions {
  GainPool pool = GainPool::Joint;
  double discount = 1;  ///< per turn
  Normalisation normalisation = population_normalisation();
  GainSteps steps = GainSteps::Turns;

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const { return normalisation.unread_keys(); }
};

/// A base rule: turn t gets sum_{k >= t} discount^(k - t) z_k over the gains and, at the last turn, the outcome (the
/// trajectory's total reward).
CreditRule turn_gain(const TurnGainOptions& options = {});

}  // namespace carnot
