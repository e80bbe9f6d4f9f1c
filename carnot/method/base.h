// method/base.h -- what bases have in common.
#pragma once

#include "carnot/credit/group_relative.h"
#include "carnot/credit/reward.h"
#include "carnot/method/method.h"

namespace carnot {

/// Independent rollouts, the old policy's log-probabilities, the rewards' shaping. Credit follows.
void start_base(Method& method, const RewardOptions& reward);

/// start_base() and GRPO's credit.
void start_group_base(Method& method, const RewardOptions& reward, const GroupRelativeOptions& group);

/// The loss as GRPO's paper writes it: the mean over trajectories of their token means, without a dual clip.
void mean_over_sequences(ObjectiveOptions& objective);

/// Visits the shaping under `reward.`.
void reward_section(FieldVisitor& visit, RewardOptions& reward);

}  // namespace carnot
