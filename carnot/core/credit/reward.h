// credit/reward.h -- rules that change the rewards before base rules read them. They come first in a chain.
#pragma once

#include "carnot/core/base/unread_keys.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

enum class RewardGrouping { Group, Batch };
enum class RewardScaling { Identity, Mean, MeanStd, AsymmetricClip };  ///< the last: MeanStd kept within [-1, 3]

/// Which rewards a base rule reads.
enum class RewardsRead {
  Totals,  ///< a trajectory's sum, wherever its parts are placed
  Tokens,
};

/// The shaping every base offers, under `reward.`. All of it is off by default.
struct RewardOptions {
  bool per_turn = false;
  double invalid_action_penalty = 0;
  int overlong_limit = 0;  ///< maximum tokens of a response; 0: no overlong penalty
  int overlong_buffer = 4096;
  double overlong_factor = 1;
  RewardScaling scaling = RewardScaling::Identity;
  RewardGrouping scaling_over = RewardGrouping::Group;

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys(RewardsRead read) const;
};

/// The rules that `options` asks for, in order.
std::vector<CreditRule> reward_rules(const RewardOptions& options);

/// Moves the penalised score from the trajectory's end to the turns that earned it: each turn's reward and penalty go
/// to its last sampled token (if it has none, to the last one before it).
CreditRule turn_rewards();

/// Subtracts coefficient * (log-probability under the old policy - under the reference) from every sampled token's
/// reward. REQUIRES: Column::LogProbOld and Column::LogProbReference, unless coefficient is 0.
CreditRule kl_in_reward(double coefficient);

/// Subtracts `amount` from the last sampled token of every turn with an invalid action. For environments that do not
/// set Turn::penalty themselves.
CreditRule invalid_action_penalty(double amount);

/// DAPO (arXiv:2503.14476, section 3.4): a response of more than limit - buffer tokens loses
/// factor * (tokens - (limit - buffer)) / buffer of its reward, on the token that carries the total reward.
CreditRule overlong_penalty(int limit, int buffer, double factor);

/// The change of the reward, <= 0.
double overlong_loss(int tokens, int limit, int buffer, double factor);

/// Number of in_response() tokens.
int response_tokens(const Trajectory& trajectory);

/// RAGEN's reward normalisation (arXiv:2504.20073): each trajectory's total is normalised within its group or over the
/// whole batch. Nothing changes if no trajectory has others to compare with: if every group, or the batch, has one
/// member.
CreditRule normalise_rewards(RewardGrouping grouping, RewardScaling scaling);

}  // namespace carnot
