// credit/turn_group_gain.h -- A2TGPO: a turn's information gain against its peers at the same depth (arXiv:2605.06200).
#pragma once

#include "carnot/credit/gains.h"
#include "carnot/credit/normalise.h"
#include "carnot/credit/rule.h"

namespace carnot {

struct TurnGroupGainOptions {
  double weight = 1;        ///< of the process credit next to the base's outcome credit
  double discount = 1;      ///< per turn
  bool rescale = true;      ///< divide the sum by the root of the number of its terms
  double clip_swing = 0.3;  ///< beta: the clip range is scaled by 1 + beta * (2 sigmoid(z) - 1)
  Normalisation normalisation = population_normalisation();
  GainSteps steps = GainSteps::Turns;

  /// Without `steps`, which quirk_fields() visits as `forget_zero_gains`: the keys of a method show it under `compat`.
  void fields(FieldVisitor& visit);
  void quirk_fields(FieldVisitor& visit);
};

/// z = a gain against the gains of the same turn index in the group (0 for one alone; a turn that several trajectories
/// share counts once). To turn t it adds
/// weight * sum_{k >= t} discount^(k - t) z_k / sqrt(number of terms; without rescale 1), and multiplies clip_scale by
/// the swing of z_t.
/// Turns without a gain of their own, such as the answer, keep their clip range.
CreditRule turn_group_gain(const TurnGroupGainOptions& options = {});

/// The z of every gain of one group's trajectories: out[i] are those of trajectories[members[i]].
std::vector<std::vector<Gain>> turn_group_gains(std::span<const Trajectory> trajectories, std::span<const int> members,
                                                const TurnGroupGainOptions& options = {});

}  // namespace carnot
