// credit/reward.h -- rules that change the rewards base rules start from. They stand first in a chain.
#pragma once

#include "carnot/credit/rule.h"

namespace carnot {

/// Moves the penalised score from the trajectory's end to the turns that earned it: each turn's reward and penalty
/// onto its last sampled token (of a turn without any: onto the last one before it).
CreditRule turn_rewards();

/// Subtracts coefficient * (log-probability under the old policy - under the reference) from every sampled token's
/// reward. REQUIRES: Column::LogProbOld and Column::LogProbReference, unless coefficient is 0.
CreditRule kl_in_reward(double coefficient);

}  // namespace carnot
