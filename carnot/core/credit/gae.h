// credit/gae.h -- generalised advantage estimation over the tokens of a trajectory (arXiv:1506.02438, PPO's base).
#pragma once

#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

struct GaeOptions {
  double gamma = 1;
  double lambda = 1;
  bool whiten = true;  ///< advantages only, over the sampled tokens of all included trajectories
  Whitening whitening{};
  /// False: the recursion of older published code, which includes observations; missing values there count as 0.
  bool skip_unsampled = true;

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const;
};

/// Reads Credit::reward and Column::Value. A token's advantage is sum_k (gamma lambda)^k delta, where the next token is
/// the next SAMPLED one: the value after a tool call bootstraps across the tool's output. Rewards on tokens that were
/// not sampled do not count. Sets value_target = advantage before whitening + value.
/// REQUIRES: Column::Value on every tree with an included trajectory.
CreditRule gae(const GaeOptions& options = {});

}  // namespace carnot
