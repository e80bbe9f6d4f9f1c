// credit/token_gain.h -- IGPO as its authors released it in November 2025: gains as token rewards.
#pragma once

#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"

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

}  // namespace carnot
