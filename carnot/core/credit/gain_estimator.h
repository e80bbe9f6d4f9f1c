// credit/gain_estimator.h -- IGPO's credit: information gains per turn, or as in one of its published programs.
#pragma once

#include "carnot/core/credit/token_gain.h"
#include "carnot/core/credit/turn_gain.h"

namespace carnot {

/// Deviations of IGPO's published programs.
struct GainQuirks {
  bool token_rewards = false;  ///< token_gain() instead of turn_gain()
  TokenBaseline token_baseline = TokenBaseline::Column;
  bool restart_at_observations = false;  ///< of token_gain()
  bool forget_zero_gains = false;        ///< GainSteps::NonzeroGains of turn_gain()

  void fields(FieldVisitor& visit);
};

struct GainEstimatorOptions {
  TurnGainOptions turns{};
  GainQuirks quirks{};

  /// Without the quirks, which a method lists under `compat`.
  void fields(FieldVisitor& visit);
  /// The quirks as `compat.*`.
  UnreadKeys unread_keys() const;
};

CreditRule gain_estimator(const GainEstimatorOptions& options);

}  // namespace carnot
