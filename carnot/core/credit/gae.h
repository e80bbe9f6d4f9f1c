// credit/gae.h -- generalised advantage estimation (arXiv:1506.02438): over the tokens of a trajectory (PPO's base), or
// first between turns and then between the tokens of a turn (RAGEN).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// The recursion (Eq. 16) from the last step to the first:
/// A = r + gamma V' - V + gamma lambda A', where V' and A' belong to the next step.
class AdvantageRecursion {
 public:
  AdvantageRecursion(double gamma, double lambda) : gamma_(gamma), lambda_(lambda) {}

  /// The advantage of the step before those passed so far.
  double step(double reward, double value) {
    const double delta = reward + gamma_ * next_value_ - value;
    next_value_ = value;
    return running_ = delta + gamma_ * lambda_ * running_;
  }

  /// Starts again: the next call of step() is for a last step.
  void restart() { next_value_ = running_ = 0; }

 private:
  double gamma_, lambda_;
  double next_value_ = 0, running_ = 0;
};

/// One trajectory's advantages, token by token, from its token rewards and the critic's values.
using CriticAdvantages = std::function<std::vector<double>(const Trajectory& trajectory, std::span<const double> reward,
                                                           std::span<const double> value)>;

/// A base rule: adds the advantages to sampled tokens of included trajectories, optionally whitened over the step, and
/// sets value_target = advantage before whitening + value. REQUIRES: Column::Value.
CreditRule critic_rule(std::string name, CriticAdvantages advantages, std::optional<Whitening> whitening);

/// RAGEN (arXiv:2504.20073).
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

/// Deviations of published programs.
struct CriticQuirks {
  bool through_observations = false;  ///< gae() with skip_unsampled = false
  bool turns_end_at_rewards = false;  ///< of bilevel_gae()

  void fields(FieldVisitor& visit);
};

struct CriticEstimatorOptions {
  GaeOptions gae{};
  bool bilevel = false;      ///< bilevel_gae() instead of gae()
  double turn_gamma = 0.95;  ///< of bilevel_gae(), per turn
  CriticQuirks quirks{};

  /// Without the quirks, which a method lists under `compat`.
  void fields(FieldVisitor& visit);
  /// The quirks as `compat.*`.
  UnreadKeys unread_keys() const;
};

CreditRule critic_estimator(const CriticEstimatorOptions& options);

}  // namespace carnot
