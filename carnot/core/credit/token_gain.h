// credit/token_gain.h -- IGPO as its authors released it in November 2025, with gains as token rewards; and the choice
// between that form and turn_gain().
#pragma once

#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"
#include "carnot/core/credit/turn_gain.h"

namespace carnot {

enum class TokenBaseline {
  Column,      ///< the group's mean at the same token index of the response; ended trajectories count as 0
  FirstToken,  ///< mean and deviation of the group's returns at their first token (defined there but never called)
};

struct TokenGainOptions {
  double discount = 1;  ///< per token
  TokenBaseline baseline = TokenBaseline::Column;
  Normalisation normalisation{};         ///< for FirstToken
  bool restart_at_observations = false;  ///< the sum restarts after tokens that were not sampled
};

/// A base rule. A gain is placed on the last token of its turn, observation included, the outcome on the last token of
/// all; the advantage is the sum from a token on, minus the baseline.
CreditRule token_gain(const TokenGainOptions& options = {});

/// The token rewards of token_gain(), for the tokens after the first prompt.
std::vector<double> token_gain_rewards(const Trajectory& trajectory, double outcome);

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
