// credit/turn_gain.h -- IGPO: information gains and outcome as turn rewards, normalised and summed (arXiv:2510.14967).
#pragma once

#include "carnot/core/credit/gains.h"
#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

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
