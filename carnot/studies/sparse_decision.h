// studies/sparse_decision.h -- AEnt's synthetic world: a decision process with few optimal actions, solved exactly.
//
// The states are depths. In each, some actions are optimal: they lead to the next depth, all others to an end without
// reward. Behind the last depth waits reward 1. The policy is a table of logits. Its gradients are exact, so that
// nothing but the entropy bonus tells runs apart (arXiv:2509.03493, sections 3 and 4), or those of sampled paths, so
// that a policy that never samples the optimal action does not learn.
#pragma once

#include <span>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/objective/adaptive_coefficient.h"

namespace carnot {

struct SparseProcess {
  std::vector<std::vector<double>> logits{};  ///< by depth and action
  std::vector<std::vector<bool>> optimal{};   ///< the same shape; at least one per depth
};

struct SparseProcessOptions {
  int depth = 3;
  int actions = 1000;
  int optimal = 10;   ///< per depth, drawn from the likelier half of the actions
  double spread = 1;  ///< standard deviation of the first logits
};

/// REQUIRES: 0 < optimal <= actions / 2.
SparseProcess sparse_process(const SparseProcessOptions& options, RandomStream& random);

/// softmax(logits).
std::vector<double> softmax(std::span<const double> logits);

/// Probability of optimal actions, by depth.
std::vector<double> optimal_mass(const SparseProcess& process);

/// Product of optimal_mass: the probability of reward 1.
double expected_return(const SparseProcess& process);

/// Of the expected return, in the logits.
std::vector<std::vector<double>> return_gradient(const SparseProcess& process);

/// What an ascent step uses: how much each depth is visited, as shares that sum to 1, and the gradient of the reward in
/// the logits.
struct PathGradient {
  std::vector<double> visits{};
  std::vector<std::vector<double>> gradient{};
};

/// Exact. `normalise` divides the gradient by the reward's standard deviation, as a group's normalised advantages do.
PathGradient exact_gradient(const SparseProcess& process, bool normalise);

/// Of `paths` sampled paths: mean over them of advantage x gradient of the log-probability of their actions. The
/// advantage is reward - mean, with `normalise` over the population deviation; 0 where all rewards are equal.
PathGradient sampled_gradient(const SparseProcess& process, int paths, bool normalise, RandomStream& random);

/// Entropy of softmax over the kept actions, renormalised, and its gradient in all logits: 0 for those left out.
struct ClampedEntropy {
  double value = 0;
  std::vector<double> gradient{};
};

/// Leaves out the int(actions * clamp) least likely actions; clamp 0: the whole softmax.
ClampedEntropy clamped_entropy(std::span<const double> logits, double clamp);

enum class EntropyBonus { None, Full, Clamped, Adaptive };

struct AscentOptions {
  EntropyBonus bonus = EntropyBonus::None;
  int steps = 300;
  double learning_rate = 30;
  double coefficient = 0.05;
  double clamp = 0.4;
  AdaptiveEntropyOptions adaptive{};
  bool normalise = true;  ///< as in exact_gradient
  int paths = 0;          ///< sampled for each step; 0: gradients are exact
};

/// One value for the start and one after each step.
struct AscentCurve {
  std::vector<double> expected_return{};
  std::vector<double> coefficient{};
  std::vector<double> entropy{};  ///< that the bonus is about (of the whole softmax without a bonus), mean over visits
};

/// Gradient ascent on return + coefficient x mean entropy of the visited states. Visits are weights without gradient,
/// as in a loss over sampled tokens. `random` is read only if paths are sampled.
AscentCurve ascend(SparseProcess process, const AscentOptions& options, RandomStream& random);

}  // namespace carnot
