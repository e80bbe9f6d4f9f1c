// credit/turn_group_gain.h -- A2TGPO: compares a turn's information gain with the gains at the same turn index
// (arXiv:2605.06200).
#pragma once

#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"
#include "carnot/core/credit/turn_gain.h"

namespace carnot {

struct TurnGroupGainOptions {
  double weight = 1;        ///< of the process credit, relative to the base's outcome credit
  double discount = 1;      ///< per turn
  bool rescale = true;      ///< divide the sum by the root of the number of its terms
  double clip_swing = 0.3;  ///< beta: the clip range is scaled by 1 + beta * (2 sigmoid(z) - 1)
  Normalisation normalisation = population_normalisation();
  GainSteps steps = GainSteps::Turns;

  /// Without `steps`, which quirk_fields() visits as `forget_zero_gains`: a method lists it under `compat`.
  void fields(FieldVisitor& visit);
  void quirk_fields(FieldVisitor& visit);
};

/// z compares a gain with the gains of the same turn index in the group (0 if it is the only one; a turn that several
/// trajectories share counts once). Adds to turn t
/// weight * sum_{k >= t} discount^(k - t) z_k / sqrt(number of terms; without rescale 1),
/// and multiplies clip_scale by 1 + clip_swing * (2 sigmoid(z_t) - 1).
/// Turns without their own gain, such as the answer, keep their clip range.
CreditRule turn_group_gain(const TurnGroupGainOptions& options = {});

/// The z of every gain of one group's trajectories: out[i] has those of trajectories[members[i]].
std::vector<std::vector<Gain>> turn_group_gains(std::span<const Trajectory> trajectories, std::span<const int> members,
                                                const TurnGroupGainOptions& options = {});

}  // namespace carnot
