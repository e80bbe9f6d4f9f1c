// credit/bilevel_gae.h -- advantages first between turns, then between the tokens of a turn (RAGEN, arXiv:2504.20073).
#pragma once

#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

struct BilevelGaeOptions {
  double gamma = 1;  ///< per sampled token
  double lambda = 1;
  double turn_gamma = 0.95;  ///< per turn
  bool whiten = true;
  Whitening whitening{};
  /// As published: a turn ends where a token's reward is not 0, so that turns without a reward are merged with the
  /// next. REQUIRES: the last sampled token has a reward.
  bool turns_end_at_rewards = false;
};

/// A base rule over Credit::reward (after turn_rewards()) and Column::Value. GAE over the turns' last sampled tokens
/// computes a return for each turn; GAE inside each turn then uses that return as the reward at its end. Sets
/// value_target = advantage before whitening + value. REQUIRES: Column::Value.
CreditRule bilevel_gae(const BilevelGaeOptions& options = {});

}  // namespace carnot
